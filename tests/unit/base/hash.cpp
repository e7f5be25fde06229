// SPDX-License-Identifier: Apache-2.0
// Hashes beside those of the program xxhsum, because their values may be stored.
#include "base/hash.h"

#include <gtest/gtest.h>

namespace rlx {

// Values printed by Debian's `xxhsum -H3`: stored hashes must never change.
TEST(hash, equals_the_xxhsum_program) {
  std::string_view text = "librlx";
  EXPECT_EQ(hash64(text), 0x46dc6b1ef88aebc6u);
}

TEST(hash, depends_on_seed_and_order) {
  EXPECT_NE(hash64("a"), hash64("a", 1));
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  EXPECT_EQ(hash64("ab"), hash64(std::as_bytes(std::span(std::string_view("ab")))));
}

}  // namespace rlx
