// SPDX-License-Identifier: Apache-2.0
// xxHash compiled into this file alone: XXH_INLINE_ALL makes every function of its header static.
#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rlx {

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t hash64(std::string_view text, uint64_t seed) {
  return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

uint64_t hash_combine(uint64_t first, uint64_t second) {
  uint64_t pair[2] = {first, second};
  return XXH3_64bits(pair, sizeof pair);
}

}  // namespace rlx
