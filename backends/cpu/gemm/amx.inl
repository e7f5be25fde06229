// SPDX-License-Identifier: Apache-2.0
// AMX ("Advanced Matrix Extensions" in Intel's Architecture Instruction Set Extensions): a tile register holds up to 16
// rows of 64 bytes. A product adds a * b to sums, where a row of b holds four terms of each of 16 columns.

#define RLX_AMX \
  [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c,bmi,bmi2,amx-tile,amx-int8")]]

inline constexpr int64_t kAmxRows = 16, kAmxFours = 16;

// Sums are in registers 0 to 3, a is in 4 and 5, b in 6 and 7. The rows of a and of the sums are `rows`, and there are
// four times `fours` terms.
RLX_AMX inline void configure_amx(int64_t rows, int64_t fours) {
  struct alignas(64) {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t bytes[16] = {};
    uint8_t rows[16] = {};
  } config;
  for (int i = 0; i < 8; ++i) {
    const bool is_a = i == 4 || i == 5;
    config.bytes[i] = static_cast<uint16_t>(is_a ? 4 * fours : 64);
    config.rows[i] = static_cast<uint8_t>(i < 6 ? rows : fours);
  }
  __asm__ volatile("" ::: "memory");  // what tiles read has been written: their instructions do not say that they read
  _tile_loadconfig(&config);
}
