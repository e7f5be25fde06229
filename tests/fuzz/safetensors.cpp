// SPDX-License-Identifier: Apache-2.0
// Damaged safetensors files. Every truncation and many seeded mutations end in tensors that lie in the file, or in a
// status. The memory that this takes has a fixed limit.
#include "import/safetensors.h"

#include <gtest/gtest.h>

#include "tests/fuzz/damage.h"

namespace rlx::test {

static std::string sound_file() {
  std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("half":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"none":{"dtype":"I64","shape":[0],)"
      R"("data_offsets":[32,32]},"scalar":{"dtype":"F64","shape":[],"data_offsets":[32,40]}})";
  uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + std::string(40, '\1');
}

// Whether it was read; every byte of every tensor is touched.
static bool read_copy(std::string_view bytes) {
  auto file = read_safetensors(copy_of(bytes));
  EXPECT_TRUE(file.ok() || !file.status().message().empty());
  if (!file.ok()) return false;
  unsigned sum = 0;
  for (const auto& [name, tensor] : file->tensors)
    for (size_t i = 0; i < tensor.bytes(); i++) sum += std::to_integer<unsigned>(tensor.data()[i]);
  EXPECT_LE(sum, 255 * bytes.size());
  return true;
}

TEST(fuzz_safetensors, every_truncation_fails_cleanly) {
  std::string file = sound_file();
  ASSERT_TRUE(read_copy(file));
  for (size_t size = 0; size < file.size(); size++)
    ASSERT_FALSE(read_copy(std::string_view(file).substr(0, size))) << size;
}

TEST(fuzz_safetensors, ten_thousand_mutations_fail_cleanly_or_are_read) {
  std::string file = sound_file();
  expect_clean_mutations(file, file.size() - 40, read_copy);
}

}  // namespace rlx::test
