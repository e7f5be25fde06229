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

// The ranks of the first k of a line: those whose upper bits precede `bits`. Of those that begin with these bits, the
// first `ties` are.
struct RankLimit {
  int shift = 31;
  uint32_t bits = UINT32_MAX;
  int64_t ties = 0;

  // Asked of the ranks of a line in their order.
  bool takes(uint32_t rank) {
    uint32_t upper = rank >> shift;
    return upper < bits || (upper == bits && ties-- > 0);
  }
};
// Takes at least k of n ranks, and at most `most`, which is not below k. Counts ranks by some of their bits at a time,
// the upper ones first. n is below 2^32.
template <class RankAt>
[[gnu::noinline]] RankLimit limit_of_ranks(int64_t n, int64_t k, int64_t most, RankAt rank_at) {
  constexpr int kBits = 11;
  int64_t before = 0;
  RankLimit limit{32, 0, n};
  while (limit.shift > 0) {
    int width = std::min(kBits, limit.shift), upper = limit.shift;
    uint32_t counts[1 << kBits] = {}, mask = (1U << width) - 1;
    limit.shift -= width;
    for (int64_t i = 0; i < n; i++) {
      uint32_t rank = rank_at(i);
      if (upper == 32 || rank >> upper == limit.bits) counts[rank >> limit.shift & mask]++;
    }
    uint32_t bin = 0;
    while (before + counts[bin] < k) before += counts[bin++];
    limit.bits = limit.bits << width | bin;
    if (before + counts[bin] <= most) return limit;
  }
  limit.ties = k - before;
  return limit;
}

}  // namespace rlx::cpu
