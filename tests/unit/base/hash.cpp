// SPDX-License-Identifier: Apache-2.0
// Hashes beside those of the program xxhsum, because their values may be stored.
#include "base/hash.h"

#include <gtest/gtest.h>

namespace rlx {

// Values printed by Debian's `xxhsum -H3` and `xxhsum -H2`: stored hashes must never change.
TEST(hash, equals_the_xxhsum_program) {
  std::string_view text = "librlx";
  EXPECT_EQ(hash64(text), 0x46dc6b1ef88aebc6u);
  Hash128 wide = hash128(std::as_bytes(std::span(text)));
  EXPECT_EQ(wide.high, 0x2b15ffab6458c6f7u);
  EXPECT_EQ(wide.low, 0x7ddbc407807c2a1cu);
}

TEST(hash, depends_on_seed_and_order) {
  EXPECT_NE(hash64("a"), hash64("a", 1));
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  EXPECT_EQ(hash64("ab"), hash64(std::as_bytes(std::span(std::string_view("ab")))));
}

}  // namespace rlx
