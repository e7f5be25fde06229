// SPDX-License-Identifier: Apache-2.0
// Quantisation. Divisions are divisions: a product with 1 / scale could round to another number.

using Bytes [[gnu::vector_size(kLanes)]] = uint8_t;

inline constexpr int64_t kAffinePart = 16384;  // elements

inline int64_t affine_rows_per_part(const AffineRows& p) {
  return p.n >= kAffinePart || p.n == 0 ? 1 : kAffinePart / p.n;
}
// A row that is longer than a part falls into several; then a part is of one row.
inline int64_t affine_pieces(const AffineRows& p) {
  return p.n > kAffinePart ? (p.n + kAffinePart - 1) / kAffinePart : 1;
}
inline int64_t affine_parts(const AffineRows& p) {
  int64_t each = affine_rows_per_part(p);
  return p.n == 0 ? 0 : (p.rows + each - 1) / each * affine_pieces(p);
}

// Calls piece(first element, count, the scale's index) for what these parts hold.
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

inline float zero_at(const AffineRows& p, int64_t i) {
  if (!p.zero) return 0;
  return p.is_signed ? static_cast<float>(static_cast<int8_t>(p.zero[i])) : static_cast<float>(p.zero[i]);
}

inline Vec zeros_at(const AffineRows& p, int64_t i, int64_t lanes) {
  float zeros[kLanes] = {};
  for (int64_t l = 0; l < lanes; ++l) zeros[l] = zero_at(p, i + l);
  return load(zeros);
}

inline Int quantized(Vec x, Vec scale, Vec zero, float lo, float hi) {
  Vec y = clamp(round(x / scale) + zero, lo, hi);
  return to_int(select(y == y, y, Vec{}));
}

inline void store_bytes(uint8_t* to, Int v, int64_t lanes) {
  Bytes bytes = __builtin_convertvector((Word)v, Bytes);
  if (lanes >= kLanes)
    __builtin_memcpy(to, &bytes, kLanes);
  else
    __builtin_memcpy(to, &bytes, static_cast<size_t>(lanes));
}

inline void quantize_piece(const QuantizeArgs& p, int64_t first, int64_t count, int64_t at) {
  float lo = p.is_signed ? -128 : 0, hi = p.is_signed ? 127 : 255;
  Vec scale = splat(p.scale[at]), zero = splat(zero_at(p, at));
  for (int64_t i = 0; i < count; i += kLanes) {
    int64_t lanes = count - i < kLanes ? count - i : kLanes;
    if (p.by_element) {
      scale = load_some(p.scale + at + i, lanes);
      zero = zeros_at(p, at + i, lanes);
    }
    store_bytes(p.y + first + i, quantized(load_some(p.x + first + i, lanes), scale, zero, lo, hi), lanes);
  }
}

inline void quantize_run(const QuantizeArgs& p, int64_t begin, int64_t end) {
  for_each_piece(p, begin, end, [&](int64_t first, int64_t count, int64_t at) { quantize_piece(p, first, count, at); });
}

inline Vec load_bytes(const uint8_t* from, int64_t lanes, bool is_signed) {
  Bytes bytes{};
  if (lanes >= kLanes)
    __builtin_memcpy(&bytes, from, kLanes);
  else
    __builtin_memcpy(&bytes, from, static_cast<size_t>(lanes));
  using SignedBytes [[gnu::vector_size(kLanes)]] = int8_t;
  return is_signed ? to_float(__builtin_convertvector((SignedBytes)bytes, Int))
                   : to_float(__builtin_convertvector(bytes, Int));
}

inline void dequantize_piece(const DequantizeArgs& p, int64_t first, int64_t count, int64_t at) {
  Vec scale = splat(p.scale[at]), zero = splat(zero_at(p, at));
  for (int64_t i = 0; i < count; i += kLanes) {
    int64_t lanes = count - i < kLanes ? count - i : kLanes;
    if (p.by_element) {
      scale = load_some(p.scale + at + i, lanes);
      zero = zeros_at(p, at + i, lanes);
    }
    store_some(p.y + first + i, (load_bytes(p.x + first + i, lanes, p.is_signed) - zero) * scale, lanes);
  }
}

inline void dequantize_run(const DequantizeArgs& p, int64_t begin, int64_t end) {
  for_each_piece(p, begin, end,
                 [&](int64_t first, int64_t count, int64_t at) { dequantize_piece(p, first, count, at); });
}

// The range of x and 0; NaN where an element is.
struct Range {
  float lo, hi;
};
inline Range range_of(const float* x, int64_t n) {
  Vec lo[2] = {}, hi[2] = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= n; i += 2 * kLanes) {
    RLX_UNROLL for (int v = 0; v < 2; ++v) {
      Vec x_v = load(x + i + v * kLanes);
      lo[v] = min(lo[v], x_v);
      hi[v] = max(hi[v], x_v);
    }
  }
  Range range{-reduce_max(max(-lo[0], -lo[1])), reduce_max(max(hi[0], hi[1]))};
  for (; i < n; ++i) {
    if (x[i] < range.lo || x[i] != x[i]) range.lo = x[i];
    if (x[i] > range.hi || x[i] != x[i]) range.hi = x[i];
  }
  return range;
}

inline int64_t dynamic_parts(const DynamicQuantizeArgs&) {
  return 1;
}

inline void dynamic_run(const DynamicQuantizeArgs& p, int64_t begin, int64_t end) {
  if (begin == end) return;
  Range range = range_of(p.x, p.n);
  float width = range.hi == range.lo ? 1 : range.hi - range.lo;
  *p.scale = width / 255;
  Vec zero = splat(0.0f - range.lo) / splat(*p.scale);
  *p.zero = static_cast<uint8_t>(quantized(zero, splat(1.0f), Vec{}, 0, 255)[0]);
  QuantizeArgs args;
  args.rows = 1;
  args.n = p.n;
  args.scale = p.scale;
  args.zero = p.zero;
  args.x = p.x;
  args.y = p.y;
  quantize_piece(args, 0, p.n, 0);
}

inline int64_t quantize_parts(const QuantizeArgs& p) {
  return affine_parts(p);
}
inline int64_t dequantize_parts(const DequantizeArgs& p) {
  return affine_parts(p);
}

inline constexpr QuantizeFns kQuantize = {
    {quantize_parts, quantize_run}, {dequantize_parts, dequantize_run}, {dynamic_parts, dynamic_run}};
