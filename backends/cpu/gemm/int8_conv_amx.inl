// SPDX-License-Identifier: Apache-2.0
// Sums of fours by AMX: filters are the rows of a, and places of x the columns of b.

#include "backends/cpu/gemm/amx.inl"

inline constexpr int64_t kAmxFewFours = 8, kAmxFewFilters = 4;  // fewer are as quick without tiles

struct AmxSums {
  // One or two blocks of filters, and one or two of places.
  template <int Filters, int Places>
  RLX_AMX static void add_tiles(const FourSpan& s, const FourBlock& block) {
    constexpr int64_t kRow = kFourPlaces * 4;
    float *sums = s.sums, *below = s.sums + kAmxRows * kFourPlaces;
    _tile_loadd(0, sums, kRow);
    if constexpr (Places > 1) _tile_loadd(1, sums + kLanes, kRow);
    if constexpr (Filters > 1) _tile_loadd(2, below, kRow);
    if constexpr (Filters > 1 && Places > 1) _tile_loadd(3, below + kLanes, kRow);
    const int64_t x_row = 4 * s.x_four;
    const int8_t* w = block.w;
    for (int64_t tap = 0; tap < s.count; ++tap, w += block.w_tap) {
      const float* x = block.x + s.taps[tap];
      _tile_loadd(6, x, x_row);
      _tile_loadd(4, w, s.w_filter);
      _tile_dpbsud(0, 4, 6);
      if constexpr (Places > 1) {
        _tile_loadd(7, x + kLanes, x_row);
        _tile_dpbsud(1, 4, 7);
      }
      if constexpr (Filters > 1) {
        _tile_loadd(5, w + kAmxRows * s.w_filter, s.w_filter);
        _tile_dpbsud(2, 5, 6);
        if constexpr (Places > 1) _tile_dpbsud(3, 5, 7);
      }
    }
    _tile_stored(0, sums, kRow);
    if constexpr (Places > 1) _tile_stored(1, sums + kLanes, kRow);
    if constexpr (Filters > 1) _tile_stored(2, below, kRow);
    if constexpr (Filters > 1 && Places > 1) _tile_stored(3, below + kLanes, kRow);
  }

  template <int Filters>
  static void add_length(FourSpan s, FourBlock block, int64_t length) {
    int64_t at = 0;
    auto skip = [&](int64_t places) {
      at += places;
      s.sums += places;
      block.x += places;
    };
    for (; at + kLanes < length; skip(2 * kLanes)) add_tiles<Filters, 2>(s, block);
    if (at < length) add_tiles<Filters, 1>(s, block);
  }

  RLX_AMX static void add_block(FourSpan s, FourBlock block, int64_t filters, int64_t length) {
    auto skip = [&](int64_t count) {
      s.sums += count * kFourPlaces;
      block.w += count * s.w_filter;
      filters -= count;
    };
    if (filters >= kAmxRows) configure_amx(kAmxRows, block.fours);
    for (; filters >= 2 * kAmxRows; skip(2 * kAmxRows)) add_length<2>(s, block, length);
    if (filters >= kAmxRows) {
      add_length<1>(s, block, length);
      skip(kAmxRows);
    }
    if (filters > 0) {
      configure_amx(filters, block.fours);
      add_length<1>(s, block, length);
    }
    _tile_release();
  }

  static void add_filters(const FourSpan& s, int64_t filters, int64_t length) {
    if (filters < kAmxFewFilters) return FourSums::add_filters(s, filters, length);
    for (int64_t first = 0; first < s.fours; first += kFourBlock) {
      FourBlock block = four_block(s, first);
      if (block.fours >= kAmxFewFours) {
        add_block(s, block, filters, length);
        continue;
      }
      FourSpan rest = s;
      rest.x = block.x;
      rest.w = block.w;
      rest.fours = block.fours;
      rest.left = s.left - first;
      FourSums::add_filters(rest, filters, length);
    }
  }
};
#undef RLX_AMX
