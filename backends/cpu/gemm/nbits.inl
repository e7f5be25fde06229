// SPDX-License-Identifier: Apache-2.0
// A part is a panel of columns times a block of rows. The weights of a few columns and a chunk of terms are decoded to
// the stack; then they are multiplied by all rows of the block, so decoding costs little where there are many rows.

#include "backends/cpu/kernels/bytes.inl"

inline constexpr int64_t kNbitsPanel = 16;   // columns
inline constexpr int64_t kNbitsRows = 64;    // of a block
inline constexpr int64_t kNbitsTerms = 512;  // of a chunk
inline constexpr int kNbitsTileRows = RLX_ISA == 2 ? 4 : 2;
inline constexpr int kNbitsTileColumns = 4;

inline int64_t nbits_panels(const NbitsProductArgs& p) {
  return (p.n + kNbitsPanel - 1) / kNbitsPanel;
}
inline int64_t nbits_parts(const NbitsProductArgs& p) {
  return nbits_panels(p) * ((p.m + kNbitsRows - 1) / kNbitsRows);
}

// ---- decoding ----

// The numbers of these bytes, one to a byte.
inline void unpack_numbers(const uint8_t* from, int64_t bytes, int bits, uint8_t* to) {
  int64_t i = 0;
  if (bits == 4) {
    const __m128i low = _mm_set1_epi8(15);
    for (; i + 16 <= bytes; i += 16, to += 32) {
      __m128i pairs = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
      __m128i first = _mm_and_si128(pairs, low), second = _mm_and_si128(_mm_srli_epi16(pairs, 4), low);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_unpacklo_epi8(first, second));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 16), _mm_unpackhi_epi8(first, second));
    }
  }
  const int mask = (1 << bits) - 1;
  for (; i < bytes; ++i)
    for (int at = 0; at < 8; at += bits) *to++ = static_cast<uint8_t>(from[i] >> at & mask);
}

// Where blocks, and the bytes of a row, are: found once, as divisions are slow.
struct NbitsLayout {
  int shift;       // a block has 2^shift terms
  int64_t blocks;  // of a row
  int64_t row;     // bytes
  int64_t zeros;   // bytes of packed zero points
  explicit NbitsLayout(const NbitsProductArgs& p)
      : shift(__builtin_ctzll(static_cast<unsigned long long>(p.block))),
        blocks((p.k + p.block - 1) >> shift),
        row((blocks << shift) * p.bits / 8),
        zeros((blocks * p.bits + 7) / 8) {}
};

inline float nbits_zero(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t column, int64_t block) {
  if (p.zero) return p.zero[column * layout.blocks + block];
  if (!p.packed_zero) return static_cast<float>(1 << (p.bits - 1));
  const int64_t bit = block * p.bits;
  return static_cast<float>(p.packed_zero[column * layout.zeros + (bit >> 3)] >> (bit & 7) & ((1 << p.bits) - 1));
}

// The weights of a column for the terms [from, from + terms), and zeros up to a whole vector.
inline void decode_column(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t column, int64_t from,
                          int64_t terms, float* to) {
  uint8_t numbers[kNbitsTerms];
  const int64_t whole = (terms + 15) / 16 * 16;
  unpack_numbers(p.packed + column * layout.row + from * p.bits / 8, whole * p.bits / 8, p.bits, numbers);
  const float* scales = p.scale + column * layout.blocks;
  for (int64_t i = 0; i < whole;) {
    const int64_t block = (from + i) >> layout.shift, rest = ((block + 1) << layout.shift) - from;
    const Vec scale = splat(scales[block]), zero = splat(nbits_zero(p, layout, column, block));
    for (const int64_t end = rest < whole ? rest : whole; i < end; i += kLanes)
      store(to + i, (to_float((Int)widened_bytes(load_bytes(numbers + i, kLanes))) - zero) * scale);
  }
  for (int64_t i = terms; i < whole; ++i) to[i] = 0;
}

// ---- sums ----

// Sums of the lanes of a tile: rows of x, columns of decoded weights.
using NbitsSums = Vec[kNbitsRows][kNbitsTileColumns];

template <int Rows>
void add_nbits_tile(const float* x, int64_t x_row, const float* w, int64_t terms, Vec (*sums)[kNbitsTileColumns]) {
  Vec acc[Rows][kNbitsTileColumns] = {};
  auto add = [&](int64_t i, int64_t n) {
    Vec right[kNbitsTileColumns];
    RLX_UNROLL for (int c = 0; c < kNbitsTileColumns; ++c) right[c] = load(w + c * kNbitsTerms + i);
    RLX_UNROLL for (int r = 0; r < Rows; ++r) {
      Vec left = load_some(x + r * x_row + i, n);
      RLX_UNROLL for (int c = 0; c < kNbitsTileColumns; ++c) acc[r][c] = fma(left, right[c], acc[r][c]);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= terms; i += kLanes) add(i, kLanes);
  if (i < terms) add(i, terms - i);
  RLX_UNROLL for (int r = 0; r < Rows; ++r) {
    RLX_UNROLL for (int c = 0; c < kNbitsTileColumns; ++c) sums[r][c] += acc[r][c];
  }
}

inline void add_nbits_rows(const float* x, int64_t x_row, int64_t rows, const float* w, int64_t terms,
                           NbitsSums& sums) {
  int64_t r = 0;
  for (; r + kNbitsTileRows <= rows; r += kNbitsTileRows)
    add_nbits_tile<kNbitsTileRows>(x + r * x_row, x_row, w, terms, sums + r);
  for (; r < rows; ++r) add_nbits_tile<1>(x + r * x_row, x_row, w, terms, sums + r);
}

inline void nbits_run(const NbitsProductArgs& p, int64_t begin, int64_t end) {
  alignas(64) float w[kNbitsTileColumns * kNbitsTerms];
  NbitsSums sums;
  const NbitsLayout layout(p);
  for (int64_t part = begin; part < end; ++part) {
    const int64_t panel = part % nbits_panels(p) * kNbitsPanel, row = part / nbits_panels(p) * kNbitsRows;
    const int64_t rows = p.m - row < kNbitsRows ? p.m - row : kNbitsRows;
    const int64_t last = panel + kNbitsPanel < p.n ? panel + kNbitsPanel : p.n;
    for (int64_t column = panel; column < last; column += kNbitsTileColumns) {
      __builtin_memset(sums, 0, static_cast<size_t>(rows) * sizeof sums[0]);
      const int64_t columns = last - column < kNbitsTileColumns ? last - column : kNbitsTileColumns;
      for (int64_t from = 0; from < p.k; from += kNbitsTerms) {
        const int64_t terms = p.k - from < kNbitsTerms ? p.k - from : kNbitsTerms;
        for (int64_t c = 0; c < kNbitsTileColumns; ++c)  // columns that are none repeat the last; nothing stores them
          decode_column(p, layout, column + (c < columns ? c : columns - 1), from, terms, w + c * kNbitsTerms);
        add_nbits_rows(p.x + row * p.k + from, p.k, rows, w, terms, sums);
      }
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
          p.y[(row + r) * p.n + column + c] = reduce_add(sums[r][c]) + (p.bias ? p.bias[column + c] : 0);
    }
  }
}

inline constexpr NbitsFns kNbits = {{nbits_parts, nbits_run}};
