// SPDX-License-Identifier: Apache-2.0
// Radix sort for keys of up to 32 bits. The rank and the place of a key are packed into one number. These numbers are
// sorted by the bytes of their ranks.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace rlx::cpu {

// The place of a key among all keys of its type.
template <class T>
uint32_t rank_of(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(value)) return UINT32_MAX;
    auto bits = std::bit_cast<uint32_t>(value + 0.0f);  // -0 + 0 is 0
    return bits >> 31 ? ~bits : bits | 1u << 31;
  } else {
    return std::is_signed_v<T> ? static_cast<uint32_t>(static_cast<int32_t>(value)) ^ 1u << 31 : value;
  }
}

// The rank of a key, and behind it the place.
template <class T>
uint64_t packed_entry(T key, int64_t place, bool descending) {
  uint32_t rank = rank_of(key);
  return uint64_t{descending ? ~rank : rank} << 32 | static_cast<uint32_t>(place);
}
inline int64_t packed_place(uint64_t entry) {
  return static_cast<uint32_t>(entry);
}

// Comparing sorts fewer entries as fast; more of them, twice, do not fit on the stack.
inline constexpr int64_t kLeastRadixSorted = 48, kMaxRadixSorted = 4096;
constexpr bool is_radix_sorted(int64_t n) {
  return n >= kLeastRadixSorted && n <= kMaxRadixSorted;
}

// Whether packed entries stand in the order of their places.
enum class PlacesAscend : bool { kNo, kYes };

// Sorts packed entries with a stable counting sort by each byte, the lowest first. If their places ascend, the bytes of
// their ranks suffice. Returns where the sorted entries are: in `from`, or in
// `to`.
template <PlacesAscend kAscend = PlacesAscend::kYes>
uint64_t* radix_sort(uint64_t* from, uint64_t* to, int64_t n) {
  constexpr int kFirst = kAscend == PlacesAscend::kYes ? 4 : 0, kBytes = 8 - kFirst;
  auto byte = [](uint64_t entry, int b) { return entry >> 8 * (kFirst + b) & 255; };
  uint32_t counts[kBytes][256] = {};
  for (int64_t i = 0; i < n; i++)
    for (int b = 0; b < kBytes; b++) counts[b][byte(from[i], b)]++;
  for (int b = 0; b < kBytes; b++) {
    if (counts[b][byte(from[0], b)] == n) continue;  // all have this byte
    uint32_t next = 0;
    for (uint32_t& count : counts[b]) next += std::exchange(count, next);
    for (int64_t i = 0; i < n; i++) to[counts[b][byte(from[i], b)]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

// As radix_sort, for any number of entries up to kMaxRadixSorted.
inline uint64_t* sort_packed(uint64_t* from, uint64_t* to, int64_t n) {
  if (is_radix_sorted(n)) return radix_sort(from, to, n);
  std::sort(from, from + n);
  return from;
}

}  // namespace rlx::cpu
