// SPDX-License-Identifier: Apache-2.0
// Chunks of products of 8-bit numbers by AMX. The packed form of b is what its products take.

#include "backends/cpu/gemm/amx.inl"

inline constexpr int64_t kAmxFewRows = 4;  // fewer are as quick without tiles

// 32 columns of two blocks of rows.
RLX_AMX inline void add_amx_two(const Int8Chunk& c, int64_t steps) {
  constexpr int64_t kSums = kInt8Width * 4, kB = kInt8Width * 4;
  const uint8_t *a = c.a, *below = c.a + kAmxRows * c.a_row;
  const int8_t* b = c.b;
  int32_t* sums_below = c.sums + kAmxRows * kInt8Width;
  _tile_loadd(0, c.sums, kSums);
  _tile_loadd(1, c.sums + 16, kSums);
  _tile_loadd(2, sums_below, kSums);
  _tile_loadd(3, sums_below + 16, kSums);
  for (int64_t step = 0; step < steps; ++step, a += 64, below += 64, b += kAmxFours * kB) {
    _tile_loadd(6, b, kB);
    _tile_loadd(4, a, c.a_row);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + 64, kB);
    _tile_dpbusd(1, 4, 7);
    _tile_loadd(5, below, c.a_row);
    _tile_dpbusd(2, 5, 6);
    _tile_dpbusd(3, 5, 7);
  }
  _tile_stored(0, c.sums, kSums);
  _tile_stored(1, c.sums + 16, kSums);
  _tile_stored(2, sums_below, kSums);
  _tile_stored(3, sums_below + 16, kSums);
}

// 32 columns of one block of rows.
RLX_AMX inline void add_amx_one(const Int8Chunk& c, int64_t steps) {
  constexpr int64_t kSums = kInt8Width * 4, kB = kInt8Width * 4;
  const uint8_t* a = c.a;
  const int8_t* b = c.b;
  _tile_loadd(0, c.sums, kSums);
  _tile_loadd(1, c.sums + 16, kSums);
  for (int64_t step = 0; step < steps; ++step, a += 64, b += kAmxFours * kB) {
    _tile_loadd(4, a, c.a_row);
    _tile_loadd(6, b, kB);
    _tile_dpbusd(0, 4, 6);
    _tile_loadd(7, b + 64, kB);
    _tile_dpbusd(1, 4, 7);
  }
  _tile_stored(0, c.sums, kSums);
  _tile_stored(1, c.sums + 16, kSums);
}

struct AmxTiles {
  RLX_AMX static void add(const Int8Chunk& chunk, int64_t rows) {
    const int64_t steps = chunk.fours / kAmxFours;
    if (rows < kAmxFewRows || steps == 0) return FourTiles::add(chunk, rows);
    if (rows >= kAmxRows) configure_amx(kAmxRows, kAmxFours);
    int64_t row = 0;
    for (; row + 2 * kAmxRows <= rows; row += 2 * kAmxRows) {
      add_amx_two(part_of(chunk, row, 0), steps);
      add_amx_two(part_of(chunk, row, 32), steps);
    }
    for (; row < rows; row += kAmxRows) {
      if (rows - row < kAmxRows) configure_amx(rows - row, kAmxFours);
      add_amx_one(part_of(chunk, row, 0), steps);
      add_amx_one(part_of(chunk, row, 32), steps);
    }
    _tile_release();
    Int8Chunk rest = chunk;
    rest.a += steps * kAmxFours * 4;
    rest.b += steps * kAmxFours * 4 * kInt8Width;
    rest.fours -= steps * kAmxFours;
    if (rest.fours > 0) FourTiles::add(rest, rows);
  }
  static Int8Chunk part_of(const Int8Chunk& c, int64_t row, int64_t column) {
    return {c.a + row * c.a_row, c.a_row, c.b + 4 * column, c.fours, c.sums + row * kInt8Width + column};
  }
};
#undef RLX_AMX
