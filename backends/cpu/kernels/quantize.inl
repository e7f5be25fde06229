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
    int64_t first = part / pieces * each, last = first + each < p.rows ? first + each : p.rows;
    int64_t from = part % pieces * kAffinePart, count = p.n - from < kAffinePart ? p.n - from : kAffinePart;
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
    p.ranges[part] = range_of(p.x + from, p.n - from < size ? p.n - from : size);
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
  quantize_piece<uint8_t>(args, first, (p.n < end * size ? p.n : end * size) - first, 0);
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

template <bool is_product>
inline void run_pair(const QuantizedPairArgs& p, int64_t begin, int64_t end) {
  RealNumbers a(p.of_a), b(p.of_b);
  Vec scale = splat(*p.of_out.scale), inverse = inverse_of(*p.of_out.scale);
  Int zero = zero_of(p.of_out);
  int32_t lo = p.of_out.is_signed ? -128 : 0, hi = lo + 255;
  in_vectors(end - begin, [&](int64_t i, int64_t n) {
    Vec left = a.load(p.a + begin + i, n), right = b.load(p.b + begin + i, n);
    Vec real = is_product ? left * right : left + right;
    store_bytes(p.out + begin + i, quantized_to_8_bits(real, scale, inverse, zero, lo, hi), n);
  });
}
inline void pair_run(const QuantizedPairArgs& p, int64_t begin, int64_t end) {
  int64_t last = end * kAffinePart < p.n ? end * kAffinePart : p.n;
  p.is_product ? run_pair<true>(p, begin * kAffinePart, last) : run_pair<false>(p, begin * kAffinePart, last);
}

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
                                          {pair_parts, pair_run}};
