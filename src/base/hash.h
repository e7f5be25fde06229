// SPDX-License-Identifier: Apache-2.0
// Hashes of bytes (XXH3, https://xxhash.com): for keys of tables and checksums of files. The values are the same on
// every machine and in every release, so they may be stored. Not for adversaries: a collision can be constructed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rlx {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
};

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t hash64(std::string_view text, uint64_t seed = 0);
Hash128 hash128(std::span<const std::byte> bytes, uint64_t seed = 0);

// The hash of two hashes, order included: hash_combine(a, b) != hash_combine(b, a).
uint64_t hash_combine(uint64_t first, uint64_t second);

// Adds a value to the hash of a sequence, for tables in memory: it costs less than hash_combine, and mixes less.
inline size_t hash_mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15u + (seed >> 29);
}

// For tables of names that are looked up by string_view.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return hash64(text); }
};

}  // namespace rlx
