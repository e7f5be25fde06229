// SPDX-License-Identifier: Apache-2.0
// Chunks of products of 8-bit numbers by AMX (Intel's Architecture Instruction Set Extensions, "Advanced Matrix
// Extensions"): a tile register holds 16 rows of 64 bytes. The packed form of b is what its products take.

#define RLX_AMX \
  [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c,bmi,bmi2,amx-tile,amx-int8")]]

inline constexpr int64_t kAmxRows = 16, kAmxFours = 16;
inline constexpr int64_t kAmxFewRows = 4;  // fewer are as quick without tiles

// Sums are in registers 0 to 3, a is in 4 and 5, b in 6 and 7. The rows of a and of the sums are `rows`.
RLX_AMX inline void configure_amx(int64_t rows) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int i = 0; i < 8; ++i) {
    config.bytes[i] = 64;
    config.rows[i] = static_cast<uint8_t>(i < 6 ? rows : kAmxFours);
  }
  __asm__ volatile("" ::: "memory");  // what tiles read has been written: their instructions do not say that they read
  _tile_loadconfig(&config);
}

// 32 columns of two blocks of rows.
RLX_AMX inline void add_amx_two(const IntegerChunk& c, int64_t steps) {
  constexpr int64_t kSums = kIntegerWidth * 4, kB = kIntegerWidth * 4;
  const uint8_t *a = c.a, *below = c.a + kAmxRows * c.a_row;
  const int8_t* b = c.b;
  int32_t* sums_below = c.sums + kAmxRows * kIntegerWidth;
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
RLX_AMX inline void add_amx_one(const IntegerChunk& c, int64_t steps) {
  constexpr int64_t kSums = kIntegerWidth * 4, kB = kIntegerWidth * 4;
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
  RLX_AMX static void add(const IntegerChunk& chunk, int64_t rows) {
    const int64_t steps = chunk.fours / kAmxFours;
    if (rows < kAmxFewRows || steps == 0) return FourTiles::add(chunk, rows);
    if (rows >= kAmxRows) configure_amx(kAmxRows);
    int64_t row = 0;
    for (; row + 2 * kAmxRows <= rows; row += 2 * kAmxRows) {
      add_amx_two(part_of(chunk, row, 0), steps);
      add_amx_two(part_of(chunk, row, 32), steps);
    }
    for (; row < rows; row += kAmxRows) {
      if (rows - row < kAmxRows) configure_amx(rows - row);
      add_amx_one(part_of(chunk, row, 0), steps);
      add_amx_one(part_of(chunk, row, 32), steps);
    }
    _tile_release();
    IntegerChunk rest = chunk;
    rest.a += steps * kAmxFours * 4;
    rest.b += steps * kAmxFours * 4 * kIntegerWidth;
    rest.fours -= steps * kAmxFours;
    if (rest.fours > 0) FourTiles::add(rest, rows);
  }
  static IntegerChunk part_of(const IntegerChunk& c, int64_t row, int64_t column) {
    return {c.a + row * c.a_row, c.a_row, c.b + 4 * column, c.fours, c.sums + row * kIntegerWidth + column};
  }
};
#undef RLX_AMX
