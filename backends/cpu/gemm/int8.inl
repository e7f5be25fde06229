// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers. A part is one panel of columns times one block of rows. Chunks of terms of either side are
// copied to the stack unless the tiles can read them in place. Zero points are subtracted from the sums when these are
// stored.

#include "backends/cpu/gemm/pairs.inl"
#include "backends/cpu/kernels/bytes.inl"

using Quarter [[gnu::vector_size(2 * kLanes)]] = int8_t;  // as many lanes as Half

inline constexpr int64_t kInt8Rows = 64;    // of a block
inline constexpr int64_t kInt8Terms = 512;  // of a chunk
inline constexpr int kMaddRows = RLX_ISA == 2 ? 4 : 2;
inline constexpr int kMaddVecs = 4;  // of kLanes / 2 columns

// Both sides of a chunk, and the place of its sums.
struct Int8Chunk {
  const uint8_t* a;
  int64_t a_row;
  const int8_t* b;  // for every four terms: four numbers of each column
  int64_t fours;
  int32_t* sums;  // rows of kInt8Width
};
using Int8TileFn = void (*)(const Int8Chunk&);

// Four numbers of a, repeated over the vector.
inline Half repeated(const uint8_t* four) {
  uint64_t wide = uint64_t{four[0]} | uint64_t{four[1]} << 16 | uint64_t{four[2]} << 32 | uint64_t{four[3]} << 48;
  using Words [[gnu::vector_size(4 * kLanes)]] = uint64_t;
  return (Half)(wide - Words{});
}

inline Half widened(const int8_t* p) {
  Quarter narrow;
  __builtin_memcpy(&narrow, p, sizeof narrow);
  return __builtin_convertvector(narrow, Half);
}

// Each number is widened to 16 bits, so that two sums of a column stand side by side.
template <int Rows>
void add_by_pairs(const Int8Chunk& chunk) {
  constexpr int64_t kColumns = kMaddVecs * kLanes / 2;
  for (int64_t column = 0; column < kInt8Width; column += kColumns) {
    Int acc[Rows][kMaddVecs] = {};
    const int8_t* b = chunk.b + 4 * column;
    for (int64_t four = 0; four < chunk.fours; ++four, b += 4 * kInt8Width) {
      Half right[kMaddVecs];
      RLX_UNROLL for (int v = 0; v < kMaddVecs; ++v) right[v] = widened(b + 2 * kLanes * v);
      RLX_UNROLL for (int r = 0; r < Rows; ++r) {
        Half left = repeated(chunk.a + r * chunk.a_row + 4 * four);
        RLX_UNROLL for (int v = 0; v < kMaddVecs; ++v) acc[r][v] += add_pairs(left, right[v]);
      }
    }
    for (int r = 0; r < Rows; ++r) {
      int32_t pairs[kMaddVecs * kLanes];
      __builtin_memcpy(pairs, acc[r], sizeof pairs);
      for (int64_t c = 0; c < kColumns; ++c) chunk.sums[r * kInt8Width + column + c] += pairs[2 * c] + pairs[2 * c + 1];
    }
  }
}

// Adds rows of a chunk by tiles of a few rows.
template <class Tiles>
void add_rows(Int8Chunk chunk, int64_t rows) {
  for (int64_t now; rows > 0; rows -= now) {
    now = min(rows, Tiles::kRows);
    Tiles::fn(now)(chunk);
    chunk.a += now * chunk.a_row;
    chunk.sums += now * kInt8Width;
  }
}

struct PairTiles {
  static constexpr int kRows = kMaddRows;
  static void add(const Int8Chunk& chunk, int64_t rows) { add_rows<PairTiles>(chunk, rows); }
  static constexpr Int8TileFn fn(int64_t rows) {
    constexpr Int8TileFn kFns[] = {add_by_pairs<1>, add_by_pairs<2>, add_by_pairs < kMaddRows == 4 ? 3 : 1 >,
                                   add_by_pairs < kMaddRows == 4 ? 4 : 1 > };
    return kFns[rows - 1];
  }
};

#if RLX_ISA == 2
#define RLX_VNNI [[gnu::target("avx512f,avx512dq,avx512bw,avx512vl,avx512vnni,avx2,fma,f16c,bmi,bmi2")]]

template <int Rows>
RLX_VNNI void add_by_fours(const Int8Chunk& chunk) {
  constexpr int kVecs = kInt8Width / kLanes;
  __m512i acc[Rows][kVecs];
  RLX_UNROLL for (int r = 0; r < Rows; ++r) {
    RLX_UNROLL for (int v = 0; v < kVecs; ++v) acc[r][v] = _mm512_loadu_si512(chunk.sums + r * kInt8Width + v * kLanes);
  }
  const int8_t* b = chunk.b;
  for (int64_t four = 0; four < chunk.fours; ++four, b += 4 * kInt8Width) {
    __m512i right[kVecs];
    RLX_UNROLL for (int v = 0; v < kVecs; ++v) {
      right[v] = _mm512_loadu_si512(b + 64 * v);
      __builtin_prefetch(b + 64 * v + (Rows == 1 ? 4096 : 2048));
    }
    RLX_UNROLL for (int r = 0; r < Rows; ++r) {
      int32_t numbers;
      __builtin_memcpy(&numbers, chunk.a + r * chunk.a_row + 4 * four, 4);
      __m512i left = _mm512_set1_epi32(numbers);
      RLX_UNROLL for (int v = 0; v < kVecs; ++v) acc[r][v] = _mm512_dpbusd_epi32(acc[r][v], left, right[v]);
    }
  }
  RLX_UNROLL for (int r = 0; r < Rows; ++r) {
    RLX_UNROLL for (int v = 0; v < kVecs; ++v) _mm512_storeu_si512(chunk.sums + r * kInt8Width + v * kLanes, acc[r][v]);
  }
}

struct FourTiles {
  static constexpr int kRows = 6;
  static void add(const Int8Chunk& chunk, int64_t rows) { add_rows<FourTiles>(chunk, rows); }
  static constexpr Int8TileFn fn(int64_t rows) {
    constexpr Int8TileFn kFns[] = {add_by_fours<1>, add_by_fours<2>, add_by_fours<3>,
                                   add_by_fours<4>, add_by_fours<5>, add_by_fours<6>};
    return kFns[rows - 1];
  }
};
#undef RLX_VNNI
#include "backends/cpu/gemm/int8_amx.inl"
#endif

// ---- a block ----

struct Int8Block {
  const uint8_t *a, *b;
  const std::byte* panel;  // null: read b in place
  int64_t rows, row, columns, column;
  std::byte* y;  // its corner
};

// Copies terms [from, from + terms) of the rows as unsigned numbers, with zeros up to a multiple of four.
inline void copy_left(const Int8ProductArgs& p, const Int8Block& block, int64_t from, int64_t terms, uint8_t* to) {
  const uint8_t flip = p.a_signed ? 0x80 : 0;
  const Bytes flips = flip - Bytes{};
  for (int64_t r = 0; r < block.rows; ++r, to += kInt8Terms) {
    const uint8_t* row = block.a + r * p.a_row + from * p.a_col;
    int64_t t = 0;
    if (p.a_col == 1)
      for (; t + kLanes <= terms; t += kLanes) {
        Bytes bytes;
        __builtin_memcpy(&bytes, row + t, kLanes);
        bytes ^= flips;
        __builtin_memcpy(to + t, &bytes, kLanes);
      }
    for (; t < terms; ++t) to[t] = static_cast<uint8_t>(row[t * p.a_col] ^ flip);
    for (; t % 4; ++t) to[t] = 0;
  }
}

inline int32_t sum_of(const uint8_t* bytes, int64_t count) {
  constexpr int64_t kStep = sizeof(Word);
  Word sums{};
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) {
    Word fours;
    __builtin_memcpy(&fours, bytes + i, kStep);
    Word pairs = (fours & 0xff00ff) + (fours >> 8 & 0xff00ff);
    sums += (pairs & 0xffff) + (pairs >> 16);
  }
  uint32_t sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += sums[lane];
  for (; i < count; ++i) sum += bytes[i];
  return static_cast<int32_t>(sum);
}

// Stores four terms of kLanes columns, of which the first `terms` count, and adds them to the sums of the columns.
inline void put_fours(Word fours, uint32_t flip, int64_t terms, int8_t* to, int32_t* sums) {
  fours ^= flip;
  if (terms < 4) fours &= (1u << 8 * terms) - 1;
  __builtin_memcpy(to, &fours, sizeof fours);
  Int total, four = (Int)fours;
  __builtin_memcpy(&total, sums, sizeof total);
  total += (four << 24 >> 24) + (four << 16 >> 24) + (four << 8 >> 24) + (four >> 24);
  __builtin_memcpy(sums, &total, sizeof total);
}

// The first n bytes, and zeros after them.
template <class V>
inline V some_bytes(const uint8_t* from, int64_t n) {
  V bytes{};
  if (n >= static_cast<int64_t>(sizeof bytes))
    __builtin_memcpy(&bytes, from, sizeof bytes);
  else
    __builtin_memcpy(&bytes, from, static_cast<size_t>(n));
  return bytes;
}

// Copies four terms at once of all columns of a panel, whose numbers lie side by side; returns how many terms that are.
#if RLX_ISA == 2
inline int64_t copy_whole_rows(const uint8_t* from, int64_t row, uint32_t flip, int64_t terms, int8_t* to,
                               int32_t* column_sums) {
  const __m512i flips = _mm512_set1_epi32(static_cast<int32_t>(flip)), ones = _mm512_set1_epi8(1);
  __m512i sums[4];
  RLX_UNROLL for (int v = 0; v < 4; ++v) sums[v] = _mm512_loadu_si512(column_sums + v * kLanes);
  int64_t t = 0;
  for (; t + 4 <= terms; t += 4, from += 4 * row, to += 4 * kInt8Width) {
    __m512i rows[4];
    RLX_UNROLL for (int i = 0; i < 4; ++i) rows[i] = _mm512_xor_si512(_mm512_loadu_si512(from + i * row), flips);
    __m512i low = _mm512_unpacklo_epi8(rows[0], rows[1]), high = _mm512_unpackhi_epi8(rows[0], rows[1]);
    __m512i low_next = _mm512_unpacklo_epi8(rows[2], rows[3]), high_next = _mm512_unpackhi_epi8(rows[2], rows[3]);
    // Quarter q of fours[i] holds columns 16 q + 4 i and on: quarters are transposed in a square.
    const __m512i fours[4] = {_mm512_unpacklo_epi16(low, low_next), _mm512_unpackhi_epi16(low, low_next),
                              _mm512_unpacklo_epi16(high, high_next), _mm512_unpackhi_epi16(high, high_next)};
    __m512i first[2], last[2];
    RLX_UNROLL for (int i = 0; i < 2; ++i) {
      first[i] = _mm512_shuffle_i32x4(fours[2 * i], fours[2 * i + 1], 0x44);
      last[i] = _mm512_shuffle_i32x4(fours[2 * i], fours[2 * i + 1], 0xee);
    }
    const __m512i columns[4] = {
        _mm512_shuffle_i32x4(first[0], first[1], 0x88), _mm512_shuffle_i32x4(first[0], first[1], 0xdd),
        _mm512_shuffle_i32x4(last[0], last[1], 0x88), _mm512_shuffle_i32x4(last[0], last[1], 0xdd)};
    RLX_UNROLL for (int v = 0; v < 4; ++v) {
      _mm512_storeu_si512(to + 4 * kLanes * v, columns[v]);
      __m512i pairs = _mm512_maddubs_epi16(ones, columns[v]);
      sums[v] = _mm512_add_epi32(sums[v], _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
    }
  }
  RLX_UNROLL for (int v = 0; v < 4; ++v) _mm512_storeu_si512(column_sums + v * kLanes, sums[v]);
  return t;
}
#else
inline int64_t copy_whole_rows(const uint8_t*, int64_t, uint32_t, int64_t, int8_t*, int32_t*) {
  return 0;
}
#endif

// Columns beyond those of the block get any numbers; nothing stores their sums.
inline void copy_right(const Int8ProductArgs& p, const Int8Block& block, int64_t from, int64_t terms, int8_t* to,
                       int32_t* column_sums) {
  const uint32_t flip = p.b_signed ? 0 : 0x80808080;
  int64_t done = 0;
  if (p.b_col == 1 && p.b_row != 1 && block.columns == kInt8Width)
    done = copy_whole_rows(block.b + from * p.b_row, p.b_row, flip, terms, to, column_sums);
  for (int64_t c = 0; c < block.columns && done < terms; c += kLanes) {
    const uint8_t* corner = block.b + from * p.b_row + c * p.b_col;
    int64_t wide = min(block.columns - c, kLanes);
    auto put = [&](int64_t t, Word fours) {
      put_fours(fours, flip, terms - t, to + t * kInt8Width + 4 * c, column_sums + c);
    };
    if (p.b_row == 1) {  // words of four terms are transposed in squares
      for (int64_t t = 0; t < terms; t += 4 * kLanes) {
        Vec square[kLanes] = {};
        for (int64_t i = 0; i < wide; ++i) square[i] = some_bytes<Vec>(corner + i * p.b_col + t, terms - t);
        transpose(square);
        for (int64_t i = 0; i < kLanes && t + 4 * i < terms; ++i) put(t + 4 * i, (Word)bits(square[i]));
      }
      continue;
    }
    for (int64_t t = done; t < terms; t += 4) {
      Word fours{};
      for (int64_t j = 0; j < 4 && t + j < terms; ++j) {
        const uint8_t* row = corner + (t + j) * p.b_row;
        Bytes one{};
        if (p.b_col == 1)
          one = some_bytes<Bytes>(row, wide);
        else
          for (int64_t i = 0; i < wide; ++i) one[i] = row[i * p.b_col];
        fours |= widened_bytes(one) << static_cast<uint32_t>(8 * j);
      }
      put(t, fours);
    }
  }
}

// What each column of a block needs to finish its sums. The sums are of unsigned a and signed b; the zero points are
// adjusted to that, all modulo 2^32.
struct Int8Columns {
  alignas(64) int32_t sums[kInt8Width] = {};
  alignas(64) uint32_t b_zero[kInt8Width], take[kInt8Width];
  alignas(64) float scale[kInt8Width], bias[kInt8Width];
  bool needs_row_sums = false;
};

inline void set_zero_points(const Int8ProductArgs& p, const Int8Block& block, Int8Columns& columns) {
  for (int64_t c = 0; c < kInt8Width; ++c) {
    int64_t at = c < block.columns ? block.column + c : block.column;
    uint32_t zero = static_cast<uint32_t>(p.b_zero ? p.b_zero[p.b_zero_by_column ? at : 0] : 0);
    columns.b_zero[c] = zero - (p.b_signed ? 0 : 128);
    columns.needs_row_sums |= columns.b_zero[c] != 0;
    columns.scale[c] = p.scale ? p.scale[p.scale_by_column ? at : 0] : 1;
    columns.bias[c] = p.bias ? p.bias[at] : 0;
  }
}

inline void finish_int8(const Int8ProductArgs& p, const Int8Block& block, const int32_t* sums, const int32_t* row_sums,
                        Int8Columns& columns) {
  uint32_t a_zero = static_cast<uint32_t>(p.a_zero ? *p.a_zero : 0) + (p.a_signed ? 128 : 0);
  for (int64_t c = 0; c < kInt8Width; ++c)
    columns.take[c] =
        a_zero * (static_cast<uint32_t>(columns.sums[c]) - static_cast<uint32_t>(p.k) * columns.b_zero[c]);
  auto words = [](const auto* from) {
    Word word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
  };
  for (int64_t r = 0; r < block.rows; ++r, sums += kInt8Width) {
    alignas(64) float y[kInt8Width];
    Word row_sum = static_cast<uint32_t>(row_sums[r]) - Word{};
    for (int64_t c = 0; c < kInt8Width; c += kLanes) {
      Word total = words(sums + c) - words(columns.take + c) - words(columns.b_zero + c) * row_sum;
      Vec real = to_float((Int)total) * load(columns.scale + c);
      if (p.bias) real = real + load(columns.bias + c);  // adding a zero for a missing bias would turn -0 into +0
      store(y + c, p.scale ? real : from_bits((Int)total));
    }
    __builtin_memcpy(block.y + r * p.y_row * 4, y, static_cast<size_t>(block.columns) * 4);
  }
}

template <class Tiles>
void int8_block(const Int8ProductArgs& p, const Int8Block& block) {
  alignas(64) uint8_t left[kInt8Rows * kInt8Terms];
  alignas(64) int8_t right[kInt8Terms * kInt8Width];
  alignas(64) int32_t sums[kInt8Rows * kInt8Width];
  int32_t row_sums[kInt8Rows] = {};
  Int8Columns columns;
  set_zero_points(p, block, columns);
  __builtin_memset(sums, 0, static_cast<size_t>(block.rows) * kInt8Width * sizeof(int32_t));
  if (block.panel) __builtin_memcpy(columns.sums, block.panel, sizeof columns.sums);
  for (int64_t from = 0; from < p.k; from += kInt8Terms) {
    int64_t terms = min(p.k - from, kInt8Terms);
    bool is_in_place = !p.a_signed && p.a_col == 1 && terms % 4 == 0;
    const uint8_t* a = is_in_place ? block.a + from : left;
    int64_t a_row = is_in_place ? p.a_row : kInt8Terms;
    if (!is_in_place) copy_left(p, block, from, terms, left);
    for (int64_t r = 0; r < block.rows && columns.needs_row_sums; ++r) row_sums[r] += sum_of(a + r * a_row, terms);
    if (!block.panel) copy_right(p, block, from, terms, right, columns.sums);
    const int8_t* b = block.panel ? reinterpret_cast<const int8_t*>(block.panel) + (4 + from) * kInt8Width : right;
    Tiles::add({a, a_row, b, (terms + 3) / 4, sums}, block.rows);
  }
  finish_int8(p, block, sums, row_sums, columns);
}

inline int64_t int8_row_blocks(int64_t m) {
  return ceil_div(m, kInt8Rows);
}

inline int64_t int8_parts(const Int8ProductArgs& p) {
  return int8_row_blocks(p.m) * ceil_div(p.n, kInt8Width) * p.batches();
}

template <class Tiles>
void int8_run(const Int8ProductArgs& p, int64_t begin, int64_t end) {
  int64_t panels = ceil_div(p.n, kInt8Width), blocks = int8_row_blocks(p.m);
  for (int64_t part = begin; part < end; ++part) {
    int64_t panel = part % panels, row = part / panels % blocks * kInt8Rows, column = panel * kInt8Width;
    BatchOffsets at = batch_offsets(p, part / panels / blocks);
    Int8Block block;
    block.a = p.a + at.a + row * p.a_row;
    block.b = p.packed ? nullptr : p.b + at.b + column * p.b_col;
    block.panel = p.packed ? p.packed + panel * int8_panel_bytes(p.k) : nullptr;
    block.row = row;
    block.rows = min(p.m - row, kInt8Rows);
    block.column = column;
    block.columns = min(p.n - column, kInt8Width);
    block.y = reinterpret_cast<std::byte*>(p.y) + 4 * (at.y + row * p.y_row + column);
    int8_block<Tiles>(p, block);
  }
}

inline constexpr Loop<Int8ProductArgs> kInt8ByPairs = {int8_parts, int8_run<PairTiles>};
#if RLX_ISA == 2
inline constexpr Loop<Int8ProductArgs> kInt8Products[] = {  // in the order of ByteProducts
    kInt8ByPairs,
    {int8_parts, int8_run<FourTiles>},
    {int8_parts, int8_run<AmxTiles>}};
#endif
