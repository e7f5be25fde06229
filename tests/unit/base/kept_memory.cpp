// SPDX-License-Identifier: Apache-2.0
// Which freed buffers are kept for later use, and for how long.
#include "base/kept_memory.h"

#include <gtest/gtest.h>

namespace rlx {

static int64_t tensor_bytes(const Host& host) {
  return host.counts(MemoryKind::kTensor).bytes;
}

TEST(kept_memory, gives_a_freed_buffer_to_who_asks_for_about_as_much) {
  auto host = Host::library();
  auto kept = std::make_shared<KeptMemory>(host, size_t{1} << 20);
  auto first = *kept->allocate(100000, MemoryKind::kTensor);
  std::byte* place = first->host();
  first = nullptr;
  EXPECT_GE(kept->bytes(), 100000);
  EXPECT_EQ(tensor_bytes(*host), 0) << "what is kept is nobody's tensor";
  auto again = *kept->allocate(100100, MemoryKind::kTensor);
  EXPECT_EQ(again->host(), place);
  EXPECT_EQ(kept->bytes(), 0);
  EXPECT_GE(tensor_bytes(*host), 100100);
  EXPECT_EQ(host->counts(MemoryKind::kTensor).allocations, 1);
}

TEST(kept_memory, keeps_no_small_buffers_no_other_kind_and_no_more_than_its_limit) {
  auto host = Host::library();
  auto kept = std::make_shared<KeptMemory>(host, 300000);
  (void)*kept->allocate(KeptMemory::kSmallest - 1, MemoryKind::kTensor);
  EXPECT_EQ(kept->bytes(), 0);
  auto a = *kept->allocate(200000, MemoryKind::kTensor), b = *kept->allocate(200000, MemoryKind::kTensor);
  a = b = nullptr;
  EXPECT_LE(kept->bytes(), 300000);
  EXPECT_GT(kept->bytes(), 0);
  auto arena = *kept->allocate(200000, MemoryKind::kArena);
  EXPECT_GT(kept->bytes(), 0) << "a buffer of another kind goes back by its own kind";
  kept->trim();
  EXPECT_EQ(kept->bytes(), 0);
  EXPECT_EQ(tensor_bytes(*host), 0);
}

TEST(kept_memory, takes_a_buffer_back_after_it_was_dropped_itself) {
  auto host = Host::library();
  auto kept = std::make_shared<KeptMemory>(host, size_t{1} << 20);
  auto buffer = *kept->allocate(100000, MemoryKind::kTensor);
  kept = nullptr;
  buffer = nullptr;
  EXPECT_EQ(tensor_bytes(*host), 0);
}

TEST(kept_memory, gives_up_what_nobody_has_wanted_for_long) {
  auto host = Host::library();
  auto kept = std::make_shared<KeptMemory>(host, size_t{1} << 24);
  (void)*kept->allocate(1 << 20, MemoryKind::kTensor);
  for (uint64_t i = 0; i < KeptMemory::kPatience; i++) (void)*kept->allocate(100000, MemoryKind::kTensor);
  EXPECT_GE(kept->bytes(), 1 << 20);
  (void)*kept->allocate(100000, MemoryKind::kTensor);
  EXPECT_LT(kept->bytes(), 1 << 20);
  EXPECT_GE(kept->bytes(), 100000) << "what is wanted stays";
  EXPECT_EQ(tensor_bytes(*host), 0);
}

}  // namespace rlx
