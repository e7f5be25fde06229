// SPDX-License-Identifier: Apache-2.0
// Damaged files: cut off anywhere, or changed in a few places by a seed.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "import/source.h"
#include "tests/fuzz/memory.h"

namespace rlx::test {

inline constexpr int kMutations = 10'000;

// A copy that ends where the bytes end, so that a sanitizer sees any read past it.
inline Source copy_of(std::string_view bytes) {
  auto view = std::as_bytes(std::span(bytes));
  auto copy = std::make_shared<std::vector<std::byte>>(view.begin(), view.end());
  return {*copy, copy, {}};
}

// One to four changes: a bit, a byte, a piece removed, a piece repeated; nine of ten at the positions of `structure`.
inline std::string mutated(std::string bytes, const std::vector<size_t>& structure, std::mt19937& random) {
  for (auto changes = random() % 4 + 1; changes > 0; changes--) {
    size_t at = random() % 10 ? structure[random() % structure.size()] : random() % bytes.size();
    at = std::min(at, bytes.size() - 1);
    size_t length = random() % 16 + 1;
    switch (random() % 5) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8)); break;
      case 1: bytes[at] = static_cast<char>(random()); break;
      case 2: bytes[at] = static_cast<char>(random() % 2 ? 0xff : 0); break;
      case 3: bytes.erase(at, length); break;
      default: bytes.insert(at, bytes.substr(at, length)); break;
    }
  }
  return bytes;
}

// Reads many mutations of a file whose first `header` bytes are its structure. `read`: whether the bytes were read,
// else it must have ended in a status. Some mutations are read and some are not, and none takes much memory.
inline void expect_clean_mutations(const std::string& file, size_t header, bool (*read)(std::string_view bytes)) {
  constexpr size_t kSlack = size_t{1} << 20;
  std::vector<size_t> structure(header);
  std::iota(structure.begin(), structure.end(), size_t{0});
  int sound = 0;
  for (uint32_t seed = 0; seed < kMutations; seed++) {
    std::mt19937 random(seed);
    size_t before = live_bytes();
    forget_peak();
    sound += read(mutated(file, structure, random));
    ASSERT_LE(peak_bytes() - before, kSlack) << "seed " << seed;
  }
  EXPECT_GT(sound, 0);
  EXPECT_LT(sound, kMutations);
}

}  // namespace rlx::test
