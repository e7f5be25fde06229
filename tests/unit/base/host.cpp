// SPDX-License-Identifier: Apache-2.0
// The services of the host: memory that it gives and gets back, the log, progress, and mistakes in them.
#include "base/host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace rlx {
namespace {

// An allocator that keeps a ledger, and fails or misaligns on request.
struct Ledger {
  struct Entry {
    void* data;
    size_t size, align;
    uint32_t kind;
    bool operator==(const Entry&) const = default;
  };
  std::vector<Entry> taken, given_back;
  size_t shift = 0;
  bool empty = false;

  static void* alloc(void* user, size_t size, size_t align, uint32_t kind) {
    auto* self = static_cast<Ledger*>(user);
    if (self->empty) return nullptr;
    auto* data = static_cast<char*>(aligned_alloc(align, (size / align + 2) * align)) + self->shift;
    self->taken.push_back({data, size, align, kind});
    return data;
  }
  static void dealloc(void* user, void* data, size_t size, size_t align, uint32_t kind) {
    auto* self = static_cast<Ledger*>(user);
    self->given_back.push_back({data, size, align, kind});
    free(static_cast<char*>(data) - self->shift);
  }
  HostServices services() { return {.user = this, .alloc = alloc, .dealloc = dealloc}; }
};

TEST(host, aligns_and_counts) {
  auto host = Host::library();
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{5} << 20}) {
    for (size_t align : {size_t{8}, size_t{64}, size_t{4096}}) {
      HostMemory memory = HostMemory::allocate(host, bytes, MemoryKind::kArena, align).value();
      ASSERT_NE(memory.data(), nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % align, 0u);
      std::memset(memory.data(), 1, bytes);
      EXPECT_EQ(host->counts(MemoryKind::kArena).bytes, static_cast<int64_t>(bytes));
    }
  }
  EXPECT_EQ(host->counts(MemoryKind::kArena).bytes, 0);
  EXPECT_EQ(host->counts(MemoryKind::kArena).peak, 5 << 20);
  EXPECT_EQ(host->counts(MemoryKind::kArena).allocations, 12);
  EXPECT_EQ(host->counts(MemoryKind::kTensor).allocations, 0);
}

TEST(host, the_host_gets_back_what_it_gave) {
  Ledger ledger;
  {
    auto host = Host::make(ledger.services()).value();
    HostMemory first = HostMemory::allocate(host, 100, MemoryKind::kTensor).value();
    HostMemory none = HostMemory::allocate(host, 0, MemoryKind::kScratch, 128).value();
    HostMemory moved = std::move(first);
    first = std::move(none);
    EXPECT_EQ(moved.size(), 100u);
    EXPECT_TRUE(ledger.given_back.empty());
  }
  ASSERT_EQ(ledger.taken.size(), 2u);
  std::ranges::sort(ledger.taken, {}, &Ledger::Entry::size);
  std::ranges::sort(ledger.given_back, {}, &Ledger::Entry::size);
  EXPECT_EQ(ledger.given_back, ledger.taken);
  EXPECT_EQ(ledger.taken[1].size, 128u);  // never 0: what malloc(0) gives differs between hosts
}

TEST(host, a_host_that_fails_is_a_status) {
  Ledger ledger;
  auto host = Host::make(ledger.services()).value();
  EXPECT_EQ(HostMemory::allocate(host, SIZE_MAX - 8, MemoryKind::kTensor).status().code(), Code::kNoMemory);
  EXPECT_EQ(HostMemory::allocate(host, 8, MemoryKind::kTensor, 24).status().code(), Code::kInvalidArgument);
  ledger.shift = 8;
  EXPECT_EQ(HostMemory::allocate(host, 8, MemoryKind::kTensor).status().code(), Code::kCallback);
  EXPECT_EQ(ledger.given_back.size(), 1u);  // the misaligned block
  ledger.empty = true;
  Status status = HostMemory::allocate(host, 8, MemoryKind::kScratch).status();
  EXPECT_EQ(status.code(), Code::kNoMemory);
  EXPECT_EQ(status.message(), "cannot allocate 8 bytes for working memory");
  EXPECT_EQ(host->counts(MemoryKind::kTensor).bytes, 0);
}

TEST(host, half_a_service_is_refused) {
  Ledger ledger;
  HostServices services = ledger.services();
  services.dealloc = nullptr;
  EXPECT_EQ(Host::make(services).status().code(), Code::kInvalidArgument);
  services = {.parallel_for = [](void*, size_t, void (*)(void*, size_t), void*) {}};
  EXPECT_EQ(Host::make(services).status().code(), Code::kInvalidArgument);
}

TEST(host, an_unknown_log_level_is_refused) {
  for (int32_t level : {0, 5}) EXPECT_TRUE(Host::make({.log_level = level}).ok()) << level;
  for (int32_t level : {-1, 6, 77}) {
    Status status = Host::make({.log_level = level}).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << level;
    EXPECT_NE(status.message().find("log_level"), std::string::npos) << status.message();
  }
}

TEST(host, the_log_level_is_the_least_severe_that_passes) {
  std::string text;
  HostServices services = {.log_level = 3, .user = &text};
  services.log = [](void* user, int32_t level, const char* category, const char* message) {
    *static_cast<std::string*>(user) += std::to_string(level) + category + message;
  };
  auto host = Host::make(services).value();
  int made = 0;
  auto said = [&] { return made++, std::string("d"); };
  host->log(LogLevel::kInfo, "a", said);
  EXPECT_EQ(made, 0) << "a text that nobody reads is not made";
  host->log(LogLevel::kWarn, "c", said);
  EXPECT_EQ(text, "3cd");
  Host::library()->log(LogLevel::kError, "no sink", said);
  EXPECT_EQ(made, 1);
}

TEST(host, progress_goes_on_stops_or_fails_as_the_host_answers) {
  static int32_t answer;
  HostServices services;
  EXPECT_TRUE(Host::library()->progress("work", 0.5).ok());
  services.progress = [](void*, const char*, double) { return answer; };
  auto host = Host::make(services).value();
  for (auto [said, code] :
       {std::pair(kCallbackOk, Code::kOk), {kCallbackStop, Code::kCancelled}, {int32_t{0}, Code::kCallback}}) {
    answer = said;
    EXPECT_EQ(host->progress("work", 0.5).code(), code);
  }
}

}  // namespace
}  // namespace rlx
