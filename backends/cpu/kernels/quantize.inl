// SPDX-License-Identifier: Apache-2.0
// Quantisation.

#include "backends/cpu/kernels/bytes.inl"

inline constexpr int64_t kAffinePart = 16384;  // elements

inline int64_t affine_rows_per_part(const AffineRows& p) {
  return p.n >= kAffinePart || p.n == 0 ? 1 : kAffinePart / p.n;
}
// A row that is longer than a part is divided into several parts; then each part belongs to one row.
inline int64_t affine_pieces(const AffineRows& p) {
  return p.n > kAffinePart ? ceil_div(p.n, kAffinePart) : 1;
}
inline int64_t affine_parts(const AffineRows& p) {
  int64_t each = affine_rows_per_part(p);
  return p.n == 0 ? 0 : ceil_div(p.rows, each) * affine_pieces(p);
}

// Calls piece(first element, count, index of the scale) for the pieces of these parts.
template <class Piece>
inline void for_each_piece(const AffineRows& p, int64_t begin, int64_t end, Piece&& piece) {
  int64_t each = affine_rows_per_part(p), pieces = affine_pieces(p);
  for (int64_t part = begin; part < end; ++part) {
    int64_t first = part / pieces * each, last = min(first + each, p.rows);
    int64_t from = part % pieces * kAffinePart, count = min(p.n - from, kAffinePart);
    if (pieces == 1) count = p.n;
    for (int64_t row = first; row < last; ++row) piece(row * p.n + from, count, p.by_element ? from : row % p.channels);
  }
}

// Numbers of 8 or 16 bits.
template <class T>
struct Numbers {
  static constexpr bool kSigned = std::is_signed_v<T>;
  static Vec load(const void* from, int64_t at, int64_t n) {
    if constexpr (sizeof(T) == 1)
      return to_float(widened_bytes(load_bytes(static_cast<const uint8_t*>(from) + at, n), kSigned));
    Int wide = (Int)load_shorts(static_cast<const uint16_t*>(from) + at, n);
    return to_float(kSigned ? (wide << 16) >> 16 : wide);
  }
  static void store(void* to, int64_t at, Int v, int64_t n) {
    if constexpr (sizeof(T) == 1)
      store_bytes(static_cast<uint8_t*>(to) + at, v, n);
    else
      store_shorts(static_cast<uint16_t*>(to) + at, v, n);
  }
};

// Scales and zero points of one piece: a single one, or one per element.
template <class T>
struct AffineAt {
  Vec scale, inverse, zero;
  const float* scales;  // null: a single one
  const void* zeros;
  int64_t at;
  AffineAt(const AffineRows& p, int64_t from)
      : scale(splat(p.scale[from])),
        inverse(inverse_of(p.by_element ? kNan : p.scale[from])),
        zero{},
        scales(p.by_element ? p.scale : nullptr),
        zeros(p.zero),
        at(from) {
    if (zeros) zero = splat(Numbers<T>::load(zeros, at, 1)[0]);
  }
  void move_to(int64_t i, int64_t n) {
    scale = load_some(scales + at + i, n);
    if (zeros) zero = Numbers<T>::load(zeros, at + i, n);
  }
};

// Calls step(i, n, ...) for the vectors of a piece, with their scales and zero points.
template <class T, class Step>
inline void for_each_vector(AffineAt<T>& affine, int64_t count, Step&& step) {
  if (!affine.scales) return in_vectors(count, step);
  for (int64_t i = 0; i < count; i += kLanes) {
    affine.move_to(i, count - i);
    step(i, count - i);
  }
}

template <class T>
void quantize_piece(const QuantizeArgs& p, int64_t first, int64_t count, int64_t at) {
  constexpr auto kLo = std::numeric_limits<T>::min(), kHi = std::numeric_limits<T>::max();
  AffineAt<T> affine(p, at);
  const float* x = p.x + first;
  void* y = static_cast<T*>(p.y) + first;
  for_each_vector(affine, count, [&](int64_t i, int64_t n) {
    Vec some = load_some(x + i, n);
    if constexpr (sizeof(T) == 1)
      Numbers<T>::store(y, i, quantized_to_8_bits(some, affine.scale, affine.inverse, to_int(affine.zero), kLo, kHi),
                        n);
    else
      Numbers<T>::store(y, i, rounded(some / affine.scale, affine.zero, kLo, kHi), n);
  });
}
template <class T>
void dequantize_piece(const DequantizeArgs& p, int64_t first, int64_t count, int64_t at) {
  AffineAt<T> affine(p, at);
  const void* x = static_cast<const T*>(p.x) + first;
  float* y = p.y + first;
  for_each_vector(affine, count, [&](int64_t i, int64_t n) {
    store_some(y + i, (Numbers<T>::load(x, i, n) - affine.zero) * affine.scale, n);
  });
}

inline void quantize_run(const QuantizeArgs& p, int64_t begin, int64_t end) {
  auto piece = p.bits == 8   ? p.is_signed ? quantize_piece<int8_t> : quantize_piece<uint8_t>
                 : p.is_signed ? quantize_piece<int16_t>
                             : quantize_piece<uint16_t>;
  for_each_piece(p, begin, end, [&](int64_t first, int64_t count, int64_t at) { piece(p, first, count, at); });
}
inline void dequantize_run(const DequantizeArgs& p, int64_t begin, int64_t end) {
  auto piece = p.bits == 8   ? p.is_signed ? dequantize_piece<int8_t> : dequantize_piece<uint8_t>
                 : p.is_signed ? dequantize_piece<int16_t>
                             : dequantize_piece<uint16_t>;
  for_each_piece(p, begin, end, [&](int64_t first, int64_t count, int64_t at) { piece(p, first, count, at); });
}

// The range of x and 0; NaN where an element is.
inline ValueRange range_of(const float* x, int64_t n) {
  Vec lo[2] = {}, hi[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    RLX_UNROLL for (int v = 0; v < 2; ++v) {
      Vec x_v = load(x + i + v * kLanes);
      lo[v] = min(lo[v], x_v);
      hi[v] = max(hi[v], x_v);
    }
  }
  ValueRange range{-reduce_max(max(-lo[0], -lo[1])), reduce_max(max(hi[0], hi[1]))};
  for (; i < n; ++i) {
    if (x[i] < range.lo || x[i] != x[i]) range.lo = x[i];
    if (x[i] > range.hi || x[i] != x[i]) range.hi = x[i];
  }
  return range;
}

inline int64_t dynamic_parts(const DynamicQuantizeArgs& p) {
  return p.ranges ? range_pieces(p.n).count : 1;
}

inline void ranges_run(const DynamicQuantizeArgs& p, int64_t begin, int64_t end) {
  int64_t size = range_pieces(p.n).size;
  for (int64_t part = begin; part < end; ++part) {
    int64_t from = part * size;
    p.ranges[part] = range_of(p.x + from, min(p.n - from, size));
  }
}

inline ValueRange range_of_all(const DynamicQuantizeArgs& p) {
  if (!p.ranges) return range_of(p.x, p.n);
  ValueRange range = p.ranges[0];
  for (int64_t i = 1; i < range_pieces(p.n).count; ++i) {
    ValueRange next = p.ranges[i];
    if (next.lo < range.lo || next.lo != next.lo) range.lo = next.lo;
    if (next.hi > range.hi || next.hi != next.hi) range.hi = next.hi;
  }
  return range;
}

// Every part finds the same scale; the first says it.
inline void dynamic_run(const DynamicQuantizeArgs& p, int64_t begin, int64_t end) {
  if (begin == end) return;
  ValueRange range = range_of_all(p);
  float scale = (range.hi == range.lo ? 1 : range.hi - range.lo) / 255;
  Vec real_zero = splat(0.0f - range.lo) / splat(scale);
  auto zero = static_cast<uint8_t>(rounded(real_zero, Vec{}, 0, 255)[0]);
  if (begin == 0) *p.scale = scale, *p.zero = zero;
  QuantizeArgs args;
  args.rows = 1;
  args.n = p.n;
  args.scale = &scale;
  args.zero = &zero;
  args.x = p.x;
  args.y = p.y;
  int64_t size = p.ranges ? range_pieces(p.n).size : p.n, first = begin * size;
  quantize_piece<uint8_t>(args, first, min(p.n, end * size) - first, 0);
}

// ---- pairs ----

inline int64_t pair_parts(const QuantizedPairArgs& p) {
  return ceil_div(p.n, kAffinePart);
}
inline Int zero_of(const QuantizedPairArgs::Numbers& numbers) {
  return splat(numbers.is_signed ? static_cast<int8_t>(*numbers.zero) : static_cast<int32_t>(*numbers.zero));
}

// Signed numbers are read as unsigned ones that are 128 larger, zero point and all.
struct RealNumbers {
  Bytes flip;
  Int zero;
  Vec scale;
  explicit RealNumbers(const QuantizedPairArgs::Numbers& numbers)
      : flip{}, zero(zero_of(numbers) + splat(numbers.is_signed ? 128 : 0)), scale(splat(*numbers.scale)) {
    for (int i = 0; i < kLanes; ++i) flip[i] = numbers.is_signed ? 128 : 0;
  }
  Vec load(const uint8_t* from, int64_t n) const {
    return to_float((Int)widened_bytes(load_bytes(from, n) ^ flip) - zero) * scale;
  }
};

// The numbers of one operand of a run: adjacent ones, or one for all.
template <bool is_one>
struct PairOperand {
  const RealNumbers& numbers;
  const uint8_t* from;
  Vec one;
  PairOperand(const RealNumbers& of, const uint8_t* data)
      : numbers(of), from(data), one(splat(is_one ? of.load(data, 1)[0] : 0)) {}
  Vec load(int64_t i, int64_t n) const { return is_one ? one : numbers.load(from + i, n); }
};

struct PairNumbers {
  RealNumbers a, b;
  Vec scale, inverse;
  Int zero;
  int32_t lo;
  bool is_tame;  // no quotient is NaN, or beyond 31 bits
  explicit PairNumbers(const QuantizedPairArgs& p)
      : a(p.of_a),
        b(p.of_b),
        scale(splat(*p.of_out.scale)),
        inverse(inverse_of(*p.of_out.scale)),
        zero(zero_of(p.of_out)),
        lo(p.of_out.is_signed ? -128 : 0) {
    float left = 255 * std::abs(*p.of_a.scale), right = 255 * std::abs(*p.of_b.scale);
    is_tame = (p.is_product ? left * right : left + right) * std::abs(inverse[0]) < 0x1p30f;
  }
};

inline constexpr int kQuad = 4;  // vectors of numbers that fill one vector of bytes

// Each plus zero, clamped to 8 bits.
inline void store_quad(uint8_t* to, const Int (&n)[kQuad], int32_t zero, bool is_signed) {
#if RLX_ISA == 2
  const __m512i shift = _mm512_set1_epi16(static_cast<int16_t>(zero));
  __m512i low = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)n[0], (__m512i)n[1]), shift);
  __m512i high = _mm512_adds_epi16(_mm512_packs_epi32((__m512i)n[2], (__m512i)n[3]), shift);
  __m512i bytes = is_signed ? _mm512_packs_epi16(low, high) : _mm512_packus_epi16(low, high);
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  _mm512_storeu_si512(to, _mm512_permutexvar_epi32(order, bytes));
#elif RLX_ISA == 1
  const __m256i shift = _mm256_set1_epi16(static_cast<int16_t>(zero));
  __m256i low = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)n[0], (__m256i)n[1]), shift);
  __m256i high = _mm256_adds_epi16(_mm256_packs_epi32((__m256i)n[2], (__m256i)n[3]), shift);
  __m256i bytes = is_signed ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256((__m256i*)to, _mm256_permutevar8x32_epi32(bytes, order));
#else
  const __m128i shift = _mm_set1_epi16(static_cast<int16_t>(zero));
  __m128i low = _mm_adds_epi16(_mm_packs_epi32((__m128i)n[0], (__m128i)n[1]), shift);
  __m128i high = _mm_adds_epi16(_mm_packs_epi32((__m128i)n[2], (__m128i)n[3]), shift);
  _mm_storeu_si128((__m128i*)to, is_signed ? _mm_packs_epi16(low, high) : _mm_packus_epi16(low, high));
#endif
}

// The larger of `farthest` and the distances of numbers, none of them NaN, from their nearest integers.
inline Vec farther([[maybe_unused]] Vec number, [[maybe_unused]] Int nearest, Vec farthest) {
#if RLX_ISA == 2
  constexpr int kWholes = 0, kLargestSize = 0b1011;
  return _mm512_range_ps(farthest, _mm512_reduce_ps(number, kWholes), kLargestSize);
#else
  return raw_max(farthest, abs(number - to_float(nearest)));
#endif
}

// See quantized_to_8_bits; one test for all vectors.
inline void quantize_quad(const Vec (&real)[kQuad], const PairNumbers& numbers, Int (&nearest)[kQuad]) {
  Vec farthest{};
  RLX_UNROLL for (int v = 0; v < kQuad; ++v) {
    Vec quotient = real[v] * numbers.inverse;
    nearest[v] = to_nearest_int(quotient);
    farthest = farther(quotient, nearest[v], farthest);
  }
  if (all_below(farthest, 0.5f - 0x1p-13f)) return;
  for (int v = 0; v < kQuad; ++v) nearest[v] = to_nearest_int(real[v] / numbers.scale);
}

template <bool is_product, bool a_is_one, bool b_is_one>
void pair_of_run(const PairNumbers& numbers, const uint8_t* a, const uint8_t* b, uint8_t* out, int64_t count) {
  PairOperand<a_is_one> left(numbers.a, a);
  PairOperand<b_is_one> right(numbers.b, b);
  auto real_at = [&](int64_t i, int64_t n) {
    return is_product ? left.load(i, n) * right.load(i, n) : left.load(i, n) + right.load(i, n);
  };
  const int32_t zero = numbers.zero[0];
  int64_t i = 0;
  for (; numbers.is_tame && i + kQuad * kLanes <= count; i += kQuad * kLanes) {
    Vec real[kQuad];
    Int nearest[kQuad];
    RLX_UNROLL for (int v = 0; v < kQuad; ++v) real[v] = real_at(i + v * kLanes, kLanes);
    quantize_quad(real, numbers, nearest);
    store_quad(out + i, nearest, zero, numbers.lo < 0);
  }
  for (; i < count; i += kLanes) {
    Int some = quantized_to_8_bits(real_at(i, count - i), numbers.scale, numbers.inverse, numbers.zero, numbers.lo,
                                   numbers.lo + 255);
    store_bytes(out + i, some, count - i);
  }
}

using PairOfRun = void (*)(const PairNumbers&, const uint8_t*, const uint8_t*, uint8_t*, int64_t);
template <bool is_product>
inline PairOfRun pair_of_run_for(bool a_is_one, bool b_is_one) {
  if (a_is_one) return b_is_one ? pair_of_run<is_product, true, true> : pair_of_run<is_product, true, false>;
  return b_is_one ? pair_of_run<is_product, false, true> : pair_of_run<is_product, false, false>;
}

inline void pair_run(const QuantizedPairArgs& p, int64_t begin, int64_t end) {
  int64_t first = begin * kAffinePart, last = min(end * kAffinePart, p.n);
  if (first >= last) return;
  const PairNumbers numbers(p);
  const int inner = p.rank - 1;
  bool a_is_one = p.a_strides[inner] == 0, b_is_one = p.b_strides[inner] == 0;
  PairOfRun of_run =
      p.is_product ? pair_of_run_for<true>(a_is_one, b_is_one) : pair_of_run_for<false>(a_is_one, b_is_one);
  while (first < last) {
    int64_t a = 0, b = 0, rest = first;
    for (int d = inner; d >= 0; --d) {
      int64_t at = rest % p.dims[d];
      rest /= p.dims[d];
      a += at * p.a_strides[d];
      b += at * p.b_strides[d];
    }
    int64_t left = p.dims[inner] - first % p.dims[inner], count = min(left, last - first);
    of_run(numbers, p.a + a, p.b + b, p.out + first, count);
    first += count;
  }
}

// ---- tables ----

inline constexpr int64_t kTablePart = 65536;  // numbers

inline int64_t table_parts(const ByteTableArgs& p) {
  return ceil_div(p.n, kTablePart);
}
inline int64_t table_end(const ByteTableArgs& p, int64_t end) {
  return min(end * kTablePart, p.n);
}
inline void table_run(const ByteTableArgs& p, int64_t begin, int64_t end) {
  constexpr int kAtOnce = 8;
  int64_t i = begin * kTablePart, last = table_end(p, end);
  for (; i + kAtOnce <= last; i += kAtOnce) {
    RLX_UNROLL for (int k = 0; k < kAtOnce; ++k) p.y[i + k] = p.table[p.x[i + k]];
  }
  for (; i < last; ++i) p.y[i] = p.table[p.x[i]];
}

#if RLX_ISA == 2
// The entries, of 128, that the low 7 bits of each byte name. By assembly, because the target may lack AVX512_VBMI.
inline __m512i permuted(__m512i index, __m512i low, __m512i high) {
  __asm__("vpermi2b %2, %1, %0" : "+v"(index) : "v"(low), "v"(high));
  return index;
}
inline void permutes_run(const ByteTableArgs& p, int64_t begin, int64_t end) {
  __m512i entries[4];
  RLX_UNROLL for (int k = 0; k < 4; ++k) entries[k] = _mm512_loadu_si512(p.table + 64 * k);
  auto looked_up = [&](__m512i x) {
    __m512i low = permuted(x, entries[0], entries[1]), high = permuted(x, entries[2], entries[3]);
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(x), low, high);
  };
  int64_t i = begin * kTablePart, last = table_end(p, end);
  for (; i + 64 <= last; i += 64) _mm512_storeu_si512(p.y + i, looked_up(_mm512_loadu_si512(p.x + i)));
  if (i >= last) return;
  auto some = static_cast<__mmask64>(~0ULL >> (64 - (last - i)));
  _mm512_mask_storeu_epi8(p.y + i, some, looked_up(_mm512_maskz_loadu_epi8(some, p.x + i)));
}
inline constexpr Loop<ByteTableArgs> kTableByPermutes = {table_parts, permutes_run};
#else
inline constexpr Loop<ByteTableArgs> kTableByPermutes = {nullptr, nullptr};
#endif

inline int64_t quantize_parts(const QuantizeArgs& p) {
  return affine_parts(p);
}
inline int64_t dequantize_parts(const DequantizeArgs& p) {
  return affine_parts(p);
}

inline constexpr QuantizeFns kQuantize = {{quantize_parts, quantize_run},
                                          {dequantize_parts, dequantize_run},
                                          {dynamic_parts, ranges_run},
                                          {dynamic_parts, dynamic_run},
                                          {pair_parts, pair_run},
                                          {table_parts, table_run},
                                          kTableByPermutes};
