// SPDX-License-Identifier: Apache-2.0
// A part is a panel of columns times a block of rows. With few rows, each weight is decoded in registers and used at
// once; where a register holds a weight for each number of 4 bits, one permutation decodes sixteen. With more, the
// weights of a panel and a chunk of terms are decoded to the stack, and then multiplied by all rows, tile by tile.

#include "backends/cpu/gemm/tile.inl"

inline constexpr int64_t kNbitsPanel = 32;    // columns
inline constexpr int64_t kNbitsRows = 256;    // of a block
inline constexpr int64_t kNbitsFewRows = 4;   // that decode in registers
inline constexpr int64_t kNbitsSomeRows = 8;  // the same, where sixteen weights take one or two instructions
inline constexpr int64_t kNbitsTerms = 256;   // of a chunk on the stack
inline constexpr int64_t kNbitsRun = 4096;    // terms that sixteen accumulators take in turn before these are added up

inline int64_t nbits_panels(const NbitsProductArgs& p) {
  return ceil_div(p.n, kNbitsPanel);
}
inline int64_t nbits_parts(const NbitsProductArgs& p) {
  return nbits_panels(p) * ceil_div(p.m, kNbitsRows);
}

// ---- decoding: sixteen numbers at a time, which are of one block ----

inline constexpr int64_t kSixteen = 16;
struct Sixteen {
  Vec v[kSixteen / kLanes];
};

// One to a byte.
template <int kBits>
inline __m128i sixteen_bytes(const uint8_t* from) {
  if constexpr (kBits == 8) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  if constexpr (kBits == 4) {
    const __m128i low = _mm_set1_epi8(15), pairs = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from));
    return _mm_unpacklo_epi8(_mm_and_si128(pairs, low), _mm_and_si128(_mm_srli_epi16(pairs, 4), low));
  }
  int32_t four;
  __builtin_memcpy(&four, from, sizeof four);
  __m128i each = _mm_cvtsi32_si128(four);  // every byte four times
  each = _mm_unpacklo_epi8(each, each);
  each = _mm_unpacklo_epi16(each, each);
  auto number = [&](int at, int mask) { return _mm_and_si128(_mm_srli_epi16(each, 2 * at), _mm_set1_epi32(mask)); };
  return _mm_or_si128(_mm_or_si128(number(0, 0x3), number(1, 0x300)),
                      _mm_or_si128(number(2, 0x30000), number(3, 0x3000000)));
}

inline Sixteen sixteen_floats(__m128i bytes) {
#if RLX_ISA == 2
  return {{to_float((Int)_mm512_cvtepu8_epi32(bytes))}};
#elif RLX_ISA == 1
  return {{to_float((Int)_mm256_cvtepu8_epi32(bytes)), to_float((Int)_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))}};
#else
  const __m128i none = _mm_setzero_si128(), low = _mm_unpacklo_epi8(bytes, none), high = _mm_unpackhi_epi8(bytes, none);
  return {{to_float((Int)_mm_unpacklo_epi16(low, none)), to_float((Int)_mm_unpackhi_epi16(low, none)),
           to_float((Int)_mm_unpacklo_epi16(high, none)), to_float((Int)_mm_unpackhi_epi16(high, none))}};
#endif
}

// The first n stay; the others become 0.
inline Sixteen first_of(const Sixteen& all, int64_t n) {
  float numbers[kSixteen] = {};
  __builtin_memcpy(numbers, &all, static_cast<size_t>(n) * sizeof(float));
  Sixteen some;
  __builtin_memcpy(&some, numbers, sizeof some);
  return some;
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

// Calls use(i, weights, n) for the n terms from + i, ... of [from, from + terms) in a column: sixteen, and at the end
// fewer, with zeros after them.
template <int kBits, class Use>
[[gnu::always_inline]] inline void for_each_sixteen(const NbitsProductArgs& p, const NbitsLayout& layout,
                                                    int64_t column, int64_t from, int64_t terms, Use&& use) {
  const uint8_t* numbers = p.packed + column * layout.row + from * kBits / 8;
  const float* scales = p.scale + column * layout.blocks;
  const int64_t whole = terms / kSixteen * kSixteen;
  Vec scale, zero;
  auto weights = [&](int64_t i) __attribute__((always_inline)) {
    Sixteen w = sixteen_floats(sixteen_bytes<kBits>(numbers + i * kBits / 8));
    RLX_UNROLL for (Vec& v : w.v) v = (v - zero) * scale;
    return w;
  };
  for (int64_t i = 0; i < terms;) {
    const int64_t block = (from + i) >> layout.shift, rest = ((block + 1) << layout.shift) - from;
    scale = splat(scales[block]), zero = splat(nbits_zero(p, layout, column, block));
    for (const int64_t end = min(rest, whole); i < end; i += kSixteen) use(i, weights(i), kSixteen);
    if (i == whole && i < terms && i < rest) {
      use(i, first_of(weights(i), terms - i), terms - i);
      return;
    }
  }
}

// ---- few rows ----

template <int kBits, int Rows>
void nbits_column(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t row, int64_t column) {
  constexpr int kVecs = kSixteen / kLanes;
  Vec sums[Rows] = {};
  for (int64_t from = 0; from < p.k; from += kNbitsRun) {
    const int64_t terms = min(p.k - from, kNbitsRun);
    Vec acc[Rows][kVecs] = {};
    const float* x = p.x + row * p.k + from;
    auto add = [&](int64_t i, const Sixteen& w, int64_t n) __attribute__((always_inline)) {
      RLX_UNROLL for (int r = 0; r < Rows; ++r) {
        const float* left = x + r * p.k + i;
        RLX_UNROLL for (int v = 0; v < kVecs; ++v) {
          if (n > v * kLanes) acc[r][v] = fma(load_some(left + v * kLanes, n - v * kLanes), w.v[v], acc[r][v]);
        }
      }
    };
    for_each_sixteen<kBits>(p, layout, column, from, terms, add);
    RLX_UNROLL for (int r = 0; r < Rows; ++r) {
      RLX_UNROLL for (const Vec& some : acc[r]) sums[r] += some;
    }
  }
  for (int r = 0; r < Rows; ++r) p.y[(row + r) * p.n + column] = reduce_add(sums[r]) + (p.bias ? p.bias[column] : 0);
}

#if RLX_ISA == 2

inline constexpr int64_t kPairs = 2 * kLanes;  // terms that are decoded together: the even ones, and the odd ones

// Puts the even ones of each kPairs terms before the odd ones.
inline void part_terms(const float* x, int64_t terms, float* to) {
  auto every_second = [&]<int... I>(int64_t i, std::integer_sequence<int, I...>) {
    Vec a = load(x + i), b = load(x + i + kLanes);
    store(to + i, __builtin_shufflevector(a, b, (2 * I)...));
    store(to + i + kLanes, __builtin_shufflevector(a, b, (2 * I + 1)...));
  };
  for (int64_t i = 0; i < terms; i += kPairs) every_second(i, std::make_integer_sequence<int, kLanes>());
}

// The zero points and scales of the two vectors that kPairs of terms are decoded to.
struct NbitsScales {
  Vec zero[2], scale[2];
};
template <int kBits, bool kMiddle, bool kShort>
inline NbitsScales nbits_scales(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t column, int64_t block) {
  const float* scale = p.scale + column * layout.blocks + block;
  const float middle = 1 << (kBits - 1);
  const Vec zero = splat(kMiddle ? middle : nbits_zero(p, layout, column, block)), first = splat(*scale);
  if constexpr (!kShort) return {{zero, zero}, {first, first}};
  const Vec next = splat(kMiddle ? middle : nbits_zero(p, layout, column, block + 1)), second = splat(scale[1]);
  if constexpr (kBits == 8) return {{zero, next}, {first, second}};
  const Vec zeros = _mm512_mask_blend_ps(0xff00, zero, next), scales = _mm512_mask_blend_ps(0xff00, first, second);
  return {{zeros, zeros}, {scales, scales}};
}

// Adds to `sums` the products of whole kPairs of terms in a column. x: rows of kNbitsRun terms, in the order of decoded
// weights. kMiddle: the zero points are not given. kShort: there are two blocks in kPairs of terms.
template <int kBits, int Rows, bool kMiddle, bool kShort>
void add_nbits_pairs(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t column, int64_t from, int64_t terms,
                     const float* x, Vec* sums) {
  const uint8_t* numbers = p.packed + column * layout.row + from * kBits / 8;
  const Vec each = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Vec acc[Rows][2] = {};
  const int64_t step = kShort ? kPairs : min(p.block, kNbitsRun);  // `from` is a multiple
  int64_t block = from >> layout.shift;
  for (int64_t first = 0; first < terms; first += step, block += kShort ? 2 : 1) {
    const NbitsScales by = nbits_scales<kBits, kMiddle, kShort>(p, layout, column, block);
    constexpr bool kTable = kBits == 4 && !kShort;  // of the weights for all numbers
    const Vec table = kTable ? (each - by.zero[0]) * by.scale[0] : each;
    for (int64_t i = first; i < min(terms, first + step); i += kPairs) {
      Vec w[2];
      const auto* at = reinterpret_cast<const __m128i*>(numbers + i * kBits / 8);
      if constexpr (kBits == 4) {
        const __m512i pairs = _mm512_cvtepu8_epi32(_mm_loadu_si128(at));
        w[0] = _mm512_permutexvar_ps(pairs, table);  // looks at 4 bits only
        w[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(pairs, 4), table);
      } else {
        w[0] = to_float((Int)_mm512_cvtepu8_epi32(_mm_loadu_si128(at)));
        w[1] = to_float((Int)_mm512_cvtepu8_epi32(_mm_loadu_si128(at + 1)));
      }
      if constexpr (!kTable)
        for (int half = 0; half < 2; ++half) w[half] = (w[half] - by.zero[half]) * by.scale[half];
      RLX_UNROLL for (int r = 0; r < Rows; ++r) {
        acc[r][0] = fma(load(x + r * kNbitsRun + i), w[0], acc[r][0]);
        acc[r][1] = fma(load(x + r * kNbitsRun + i + kLanes), w[1], acc[r][1]);
      }
    }
  }
  RLX_UNROLL for (int r = 0; r < Rows; ++r) sums[r] += acc[r][0] + acc[r][1];
}

template <int kBits, int Rows>
auto nbits_pairs_fn(const NbitsProductArgs& p) {
  const bool is_middle = !p.zero && !p.packed_zero;
  if (p.block < kPairs)
    return is_middle ? add_nbits_pairs<kBits, Rows, true, true> : add_nbits_pairs<kBits, Rows, false, true>;
  return is_middle ? add_nbits_pairs<kBits, Rows, true, false> : add_nbits_pairs<kBits, Rows, false, false>;
}

template <int kBits, int Rows>
void nbits_columns(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t row, int64_t panel, int64_t last) {
  alignas(64) float x[Rows * kNbitsRun];
  Vec sums[kNbitsPanel][Rows] = {};
  const int64_t whole = p.k / kPairs * kPairs;
  auto add = nbits_pairs_fn<kBits, Rows>(p);
  for (int64_t from = 0; from < whole; from += kNbitsRun) {
    const int64_t terms = min(whole - from, kNbitsRun);
    for (int r = 0; r < Rows; ++r) {
      const float* left = p.x + (row + r) * p.k + from;
      if constexpr (kBits == 4)
        part_terms(left, terms, x + r * kNbitsRun);
      else
        __builtin_memcpy(x + r * kNbitsRun, left, static_cast<size_t>(terms) * sizeof(float));
    }
    for (int64_t column = panel; column < last; ++column) add(p, layout, column, from, terms, x, sums[column - panel]);
  }
  for (int64_t column = panel; column < last; ++column) {
    Vec* own = sums[column - panel];
    auto add_rest = [&](int64_t i, const Sixteen& w, int64_t n) __attribute__((always_inline)) {
      RLX_UNROLL for (int r = 0; r < Rows; ++r) own[r] =
          fma(load_some(p.x + (row + r) * p.k + whole + i, n), w.v[0], own[r]);
    };
    for_each_sixteen<kBits>(p, layout, column, whole, p.k - whole, add_rest);
    for (int r = 0; r < Rows; ++r) p.y[(row + r) * p.n + column] = reduce_add(own[r]) + (p.bias ? p.bias[column] : 0);
  }
}

#endif

// Whether some rows, more than a few, decode in registers.
template <int kBits>
constexpr bool kHasPairs = RLX_ISA == 2 && kBits != 2;

template <int kBits>
void nbits_few_rows(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t row, int64_t rows, int64_t panel,
                    int64_t last) {
#if RLX_ISA == 2
  if constexpr (kHasPairs<kBits>) {
    constexpr decltype(&nbits_columns<kBits, 1>) kColumns[kNbitsSomeRows] = {
        nbits_columns<kBits, 1>, nbits_columns<kBits, 2>, nbits_columns<kBits, 3>, nbits_columns<kBits, 4>,
        nbits_columns<kBits, 5>, nbits_columns<kBits, 6>, nbits_columns<kBits, 7>, nbits_columns<kBits, 8>};
    return kColumns[rows - 1](p, layout, row, panel, last);
  }
#endif
  using ColumnFn = void (*)(const NbitsProductArgs&, const NbitsLayout&, int64_t, int64_t);
  constexpr ColumnFn kFns[kNbitsFewRows] = {nbits_column<kBits, 1>, nbits_column<kBits, 2>, nbits_column<kBits, 3>,
                                            nbits_column<kBits, 4>};
  for (int64_t column = panel; column < last; ++column) kFns[rows - 1](p, layout, row, column);
}

// ---- many rows ----

inline constexpr int kNbitsVecs = 2;
inline constexpr int64_t kNbitsStrip = kNbitsVecs * kLanes;  // columns of a tile
inline constexpr int64_t kNbitsStrips = kNbitsPanel / kNbitsStrip;

// Decodes terms [from, from + terms) of a strip of columns to rows of terms. Columns beyond `last` repeat the one
// before it; nothing stores their sums.
template <int kBits>
void decode_strip(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t column, int64_t last, int64_t from,
                  int64_t terms, float* to) {
  alignas(64) float w[kLanes][kNbitsTerms];
  for (int64_t c = 0; c < kNbitsStrip; c += kLanes) {
    for (int64_t i = 0; i < kLanes; ++i) {
      auto keep = [&](int64_t t, const Sixteen& some, int64_t) __attribute__((always_inline)) {
        __builtin_memcpy(w[i] + t, &some, sizeof some);
      };
      const int64_t own = column + c + i;
      for_each_sixteen<kBits>(p, layout, own < last ? own : last - 1, from, terms, keep);
    }
    for (int64_t t = 0; t < terms; t += kLanes) {
      Vec square[kLanes];
      RLX_UNROLL for (int i = 0; i < kLanes; ++i) square[i] = load(w[i] + t);
      transpose(square);
      RLX_UNROLL for (int i = 0; i < kLanes; ++i) store(to + (t + i) * kNbitsStrip + c, square[i]);
    }
  }
}

template <int kBits>
void nbits_many_rows(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t row, int64_t rows, int64_t panel,
                     int64_t last) {
  alignas(64) float w[kNbitsStrips][kNbitsTerms * kNbitsStrip], sums[kNbitsRows][kNbitsPanel];
  const int64_t strips = ceil_div(last - panel, kNbitsStrip);
  int64_t from = 0;
  do {
    const int64_t terms = p.k - from < kNbitsTerms ? p.k - from : kNbitsTerms;
    for (int64_t s = 0; s < strips; ++s)
      decode_strip<kBits>(p, layout, panel + s * kNbitsStrip, last, from, terms, w[s]);
    for_each_tile(rows, kNbitsVecs, [&](int64_t first, int64_t, TileFn tile) {
      for (int64_t s = 0; s < strips; ++s)
        tile({.a = p.x + (row + first) * p.k + from,
              .a_row = p.k,
              .a_col = 1,
              .b = w[s],
              .b_row = kNbitsStrip,
              .k = terms,
              .out = sums[first] + s * kNbitsStrip,
              .out_row = kNbitsPanel,
              .next = w[s]},
             from > 0);
    });
    from += terms;
  } while (from < p.k);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = panel; c < last; c += kLanes) {
      Vec sum = load(sums[r] + c - panel);
      if (p.bias) sum += load_some(p.bias + c, last - c);
      store_some(p.y + (row + r) * p.n + c, sum, last - c);
    }
}

template <int kBits>
void nbits_part(const NbitsProductArgs& p, const NbitsLayout& layout, int64_t part) {
  const int64_t panel = part % nbits_panels(p) * kNbitsPanel, row = part / nbits_panels(p) * kNbitsRows;
  const int64_t rows = min(p.m - row, kNbitsRows);
  const int64_t last = min(panel + kNbitsPanel, p.n);
  const int64_t few = kHasPairs<kBits> ? kNbitsSomeRows : kNbitsFewRows;
  (rows <= few ? nbits_few_rows<kBits> : nbits_many_rows<kBits>)(p, layout, row, rows, panel, last);
}

inline void nbits_run(const NbitsProductArgs& p, int64_t begin, int64_t end) {
  const NbitsLayout layout(p);
  auto part = p.bits == 2 ? nbits_part<2> : p.bits == 4 ? nbits_part<4> : nbits_part<8>;
  for (int64_t i = begin; i < end; ++i) part(p, layout, i);
}

inline constexpr NbitsFns kNbits = {{nbits_parts, nbits_run}};
