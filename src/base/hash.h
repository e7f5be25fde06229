// SPDX-License-Identifier: Apache-2.0
// Hashes of bytes (XXH3, https://xxhash.com): for keys of tables and checksums of files. The values are the same on
// every machine and in every release, so they may be stored. Not for adversaries: a collision can be constructed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace rlx {

uint64_t hash64(std::span<const std::byte> bytes, uint64_t seed = 0);
uint64_t hash64(std::string_view text, uint64_t seed = 0);

// The hash of two hashes, order included: hash_combine(a, b) != hash_combine(b, a).
uint64_t hash_combine(uint64_t first, uint64_t second);

// Adds a value to the hash of a sequence, for tables in memory: it costs less than hash_combine, and mixes less.
inline size_t hash_mix(size_t seed, size_t value) {
  return (seed ^ value) * 0x9e3779b97f4a7c15u + (seed >> 29);
}

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return hash64(text); }
};
// A table of names, which finds a string_view too.
template <class T>
using ByName = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace rlx
