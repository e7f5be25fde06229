// SPDX-License-Identifier: Apache-2.0
// Vectors of f32 for one instruction set: RLX_ISA is 0 (SSE2), 1 (AVX2 + FMA) or 2 (AVX-512). Included by each_isa.inl.
// Invariant: a load or store of n lanes touches exactly n elements and no memory after them.
// Vec and Int are compiler vectors: + - * / compare and ?: work on them lane by lane.

inline constexpr int kLanes = RLX_ISA == 2 ? 16 : RLX_ISA == 1 ? 8 : 4;
inline constexpr int kRegisters = RLX_ISA == 2 ? 32 : 16;
using Vec [[gnu::vector_size(4 * kLanes)]] = float;
using Int [[gnu::vector_size(4 * kLanes)]] = int32_t;    // a mask: all ones or 0 in each lane
using Word [[gnu::vector_size(4 * kLanes)]] = uint32_t;  // wraps

// The smaller and the larger of two sizes or positions, whose types may differ. Not std::min: the templates of a header
// are compiled once, for the baseline, and two types need a cast there.
constexpr auto min(std::integral auto a, std::integral auto b) {
  return a < b ? a : b;
}
constexpr auto max(std::integral auto a, std::integral auto b) {
  return a < b ? b : a;
}

inline Vec splat(float value) {
#if RLX_ISA == 2
  return _mm512_set1_ps(value);
#elif RLX_ISA == 1
  return _mm256_set1_ps(value);
#else
  return _mm_set1_ps(value);
#endif
}
inline Int splat(int32_t value) {
  return value - Int{};
}
inline Int bits(Vec v) {
  return (Int)v;
}
inline Vec from_bits(Int v) {
  return (Vec)v;
}
inline Vec select(Int mask, Vec yes, Vec no) {
  return mask ? yes : no;
}
inline Vec to_float(Int v) {
  return __builtin_convertvector(v, Vec);
}
inline Int to_int(Vec v) {  // truncates; |v| < 2^31
  return __builtin_convertvector(v, Int);
}

inline Vec load(const float* p) {
  Vec v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) {
  __builtin_memcpy(p, &v, sizeof v);
}

#if RLX_ISA == 2

inline __mmask16 first(int64_t n) {
  return static_cast<__mmask16>((1u << n) - 1);
}
inline Vec load(const float* p, int64_t n) {
  return _mm512_maskz_loadu_ps(first(n), p);
}
using Lanes = __mmask16;  // some of the lanes
inline Lanes lanes(int64_t begin, int64_t end) {
  return static_cast<Lanes>(first(end) & ~first(begin));
}
inline Vec load(const float* p, Lanes some) {
  return _mm512_maskz_loadu_ps(some, p);
}
inline void store(float* p, Vec v, int64_t n) {
  _mm512_mask_storeu_ps(p, first(n), v);
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Vec sqrt(Vec v) {
  return _mm512_sqrt_ps(v);
}
inline Vec round(Vec v) {
  return _mm512_roundscale_ps(v, 8);
}
inline Vec floor(Vec v) {
  return _mm512_roundscale_ps(v, 9);
}
// The maximum of the instruction: b if either is NaN.
inline Vec raw_max(Vec a, Vec b) {
  return _mm512_max_ps(a, b);
}
inline Vec raw_min(Vec a, Vec b) {
  return _mm512_min_ps(a, b);
}
// v * 2^n for integral n; overflow and denormals are rounded once.
inline Vec scale_by_power(Vec v, Vec n) {
  return _mm512_scalef_ps(v, n);
}

#else

inline Vec scale_by_power(Vec v, Vec n) {  // |n| < 250: two factors, so that neither overflows
  Int whole = to_int(n), half = whole >> 1;
  Int bias = splat(127);
  return v * from_bits((half + bias) << 23) * from_bits((whole - half + bias) << 23);
}

#if RLX_ISA == 1

inline __m256i first(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vec load(const float* p, int64_t n) {
  return _mm256_maskload_ps(p, first(n));
}
using Lanes = __m256i;
inline Lanes lanes(int64_t begin, int64_t end) {
  return _mm256_andnot_si256(first(begin), first(end));
}
inline Vec load(const float* p, Lanes some) {
  return _mm256_maskload_ps(p, some);
}
inline void store(float* p, Vec v, int64_t n) {
  _mm256_maskstore_ps(p, first(n), v);
}
inline Vec fma(Vec a, Vec b, Vec c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Vec sqrt(Vec v) {
  return _mm256_sqrt_ps(v);
}
inline Vec round(Vec v) {
  return _mm256_round_ps(v, 8);
}
inline Vec floor(Vec v) {
  return _mm256_round_ps(v, 9);
}
inline Vec raw_max(Vec a, Vec b) {
  return _mm256_max_ps(a, b);
}
inline Vec raw_min(Vec a, Vec b) {
  return _mm256_min_ps(a, b);
}

#else

inline Vec load(const float* p, int64_t n) {
  Vec v{};
  for (int64_t i = 0; i < n; ++i) v[i] = p[i];
  return v;
}
struct Lanes {
  int64_t begin, end;
};
inline Lanes lanes(int64_t begin, int64_t end) {
  return {begin, end};
}
inline Vec load(const float* p, Lanes some) {
  Vec v{};
  for (int64_t i = some.begin; i < some.end; ++i) v[i] = p[i];
  return v;
}
inline void store(float* p, Vec v, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = v[i];
}
inline Vec fma(Vec a, Vec b, Vec c) {  // two roundings: callers must not rely on a single one
  return a * b + c;
}
inline Vec sqrt(Vec v) {
  return _mm_sqrt_ps(v);
}
inline Vec round(Vec v) {  // adding 2^23 leaves no bits for a fraction
  Int sign = bits(v) & splat(INT32_MIN);
  Vec size = from_bits(bits(v) ^ sign), big = splat(8388608.0f);
  Vec rounded = from_bits(bits((size + big) - big) | sign);
  return select(size < big, rounded, v);
}
inline Vec floor(Vec v) {
  Vec r = round(v);
  return select(r > v, r - splat(1.0f), r);
}
inline Vec raw_max(Vec a, Vec b) {
  return _mm_max_ps(a, b);
}
inline Vec raw_min(Vec a, Vec b) {
  return _mm_min_ps(a, b);
}

#endif
#endif

inline Vec fma(Vec a, float b, Vec c) {
  return fma(a, splat(b), c);
}
inline Vec fma(Vec a, Vec b, float c) {
  return fma(a, b, splat(c));
}

// Loads and stores of a piece of a row: a full vector, or its last n lanes.
inline Vec load_some(const float* p, int64_t n) {
  return n >= kLanes ? load(p) : load(p, n);
}
inline void store_some(float* p, Vec v, int64_t n) {
  n >= kLanes ? store(p, v) : store(p, v, n);
}

// The lanes in which a vector from `at` on lies inside a row of `size`.
inline Lanes lanes_inside(int64_t size, int64_t at) {
  int64_t begin = at >= 0 ? 0 : at > -kLanes ? -at : kLanes, left = size - at;
  return lanes(begin, left <= begin ? begin : min(left, kLanes));
}

// Calls step(i, n) for the vectors of a row: n is a constant for all but the last.
template <class Step>
[[gnu::always_inline]] inline void in_vectors(int64_t count, Step&& step) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) step(i, kLanes);
  if (i < count) step(i, count - i);
}

inline Vec abs(Vec v) {
  return from_bits(bits(v) & splat(INT32_MAX));
}
inline Vec copysign(Vec size, Vec sign) {
  return from_bits((bits(size) & splat(INT32_MAX)) | (bits(sign) & splat(INT32_MIN)));
}
// A NaN operand wins.
inline Vec max(Vec a, Vec b) {
  return select(a == a, raw_max(a, b), a);
}
inline Vec min(Vec a, Vec b) {
  return select(a == a, raw_min(a, b), a);
}
// NaN stays.
inline Vec clamp(Vec v, float lo, float hi) {
  return raw_min(splat(hi), raw_max(splat(lo), v));
}

// Horizontal folds, always in the same tree: the upper half onto the lower one, until one lane is left.
template <int Width, int... I>
inline Vec upper_lanes(Vec v, std::integer_sequence<int, I...>) {
  return __builtin_shufflevector(v, v, (I < Width ? I + Width : I)...);
}
template <int Width, Vec (*fold)(Vec, Vec)>
inline Vec fold_lanes(Vec v) {
  if constexpr (Width == 0)
    return v;
  else
    return fold_lanes<Width / 2, fold>(fold(v, upper_lanes<Width>(v, std::make_integer_sequence<int, kLanes>())));
}
inline Vec plus(Vec a, Vec b) {
  return a + b;
}
inline float reduce_add(Vec v) {
  return fold_lanes<kLanes / 2, plus>(v)[0];
}
inline float reduce_max(Vec v) {  // NaN wins
  return fold_lanes<kLanes / 2, max>(v)[0];
}

// Swaps the blocks of Width lanes that lie across the diagonal of each 2 x 2 group of blocks.
template <int Width, int... I>
inline void swap_blocks(Vec& top, Vec& bottom, std::integer_sequence<int, I...>) {
  Vec above = __builtin_shufflevector(top, bottom, ((I & Width) ? I - Width + kLanes : I)...);
  bottom = __builtin_shufflevector(top, bottom, ((I & Width) ? I + kLanes : I + Width)...);
  top = above;
}
template <int Width>
inline void transpose_blocks(Vec (&rows)[kLanes]) {
  RLX_UNROLL for (int r = 0; r < kLanes; ++r) {
    if ((r & Width) == 0) swap_blocks<Width>(rows[r], rows[r + Width], std::make_integer_sequence<int, kLanes>());
  }
}
// rows[i][j] becomes rows[j][i].
inline void transpose(Vec (&rows)[kLanes]) {
  transpose_blocks<1>(rows);
  transpose_blocks<2>(rows);
  if constexpr (kLanes > 4) transpose_blocks<4>(rows);
  if constexpr (kLanes > 8) transpose_blocks<8>(rows);
}
