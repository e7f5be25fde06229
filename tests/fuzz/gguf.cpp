// SPDX-License-Identifier: Apache-2.0
// Damaged GGUF files. Every truncation and many seeded mutations end in tensors that lie in the file, or in a status.
// The memory that this takes has a fixed limit.
#include "import/gguf.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/fuzz/damage.h"
#include "tests/support/paths.h"

namespace rlx::test {

static constexpr size_t kHeader = 2500;  // of the sample, about: what is not data

static std::string sound_file() {
  std::ifstream file(test_path("models/blocks.gguf"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Whether it was read; every byte of every tensor is touched.
static bool read_copy(std::string_view bytes) {
  auto file = read_gguf(copy_of(bytes), {.decode = true});
  EXPECT_TRUE(file.ok() || !file.status().message().empty());
  if (!file.ok()) return false;
  unsigned sum = 0;
  for (const auto& [name, tensor] : file->tensors)
    for (size_t i = 0; i < tensor.bytes(); i++) sum += std::to_integer<unsigned>(tensor.data()[i]);
  return sum < UINT32_MAX;
}

TEST(fuzz_gguf, every_truncation_fails_cleanly) {
  std::string file = sound_file();
  ASSERT_TRUE(read_copy(file));
  for (size_t size = 0; size < kHeader; size++) ASSERT_FALSE(read_copy(std::string_view(file).substr(0, size))) << size;
  for (size_t size = kHeader; size < file.size(); size += 97) read_copy(std::string_view(file).substr(0, size));
}

TEST(fuzz_gguf, ten_thousand_mutations_fail_cleanly_or_are_read) {
  expect_clean_mutations(sound_file(), kHeader, read_copy);
}

}  // namespace rlx::test
