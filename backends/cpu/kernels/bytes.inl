// SPDX-License-Identifier: Apache-2.0
// 8-bit numbers in vectors of 32-bit lanes, and f32 rounded to them.

using Bytes [[gnu::vector_size(kLanes)]] = uint8_t;

// Loads the first n bytes, and zeros after them.
inline Bytes load_bytes(const uint8_t* from, int64_t n) {
  Bytes bytes{};
#if RLX_ISA == 2
  if (n < kLanes) return (Bytes)_mm_maskz_loadu_epi8(first(n), from);
#endif
  __builtin_memcpy(&bytes, from, static_cast<size_t>(min(n, kLanes)));
  return bytes;
}

inline Word widened_bytes(Bytes bytes) {
#if RLX_ISA == 2
  return (Word)_mm512_cvtepu8_epi32((__m128i)bytes);
#elif RLX_ISA == 1
  return (Word)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)bytes));
#else
  return __builtin_convertvector(bytes, Word);
#endif
}
inline Int widened_bytes(Bytes bytes, bool is_signed) {
  Int wide = (Int)widened_bytes(bytes);
  return is_signed ? (wide << 24) >> 24 : wide;
}

// The low byte of each lane.
inline Bytes low_bytes(Int v) {
#if RLX_ISA == 2
  return (Bytes)_mm512_cvtepi32_epi8((__m512i)v);
#elif RLX_ISA == 1
  const __m256i pick = _mm256_set1_epi32(0x0c080400);
  __m256i packed = _mm256_shuffle_epi8((__m256i)v, pick);
  __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
  return (Bytes)_mm_cvtsi128_si64(both);
#else
  return __builtin_convertvector((Word)v, Bytes);
#endif
}
inline void store_bytes(uint8_t* to, Int v, int64_t n) {
  Bytes bytes = low_bytes(v);
#if RLX_ISA == 2
  if (n < kLanes) return _mm_mask_storeu_epi8(to, first(n), (__m128i)bytes);
#endif
  __builtin_memcpy(to, &bytes, static_cast<size_t>(min(n, kLanes)));
}

// The same for 16-bit numbers.
using Shorts [[gnu::vector_size(2 * kLanes)]] = uint16_t;
inline Word load_shorts(const uint16_t* from, int64_t n) {
  Shorts numbers{};
#if RLX_ISA == 2
  return (Word)_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(n < kLanes ? first(n) : first(kLanes), from));
#endif
  __builtin_memcpy(&numbers, from, static_cast<size_t>(min(n, kLanes)) * 2);
  return __builtin_convertvector(numbers, Word);
}
inline void store_shorts(uint16_t* to, Int v, int64_t n) {
#if RLX_ISA == 2
  return _mm256_mask_storeu_epi16(to, n < kLanes ? first(n) : first(kLanes), _mm512_cvtepi32_epi16((__m512i)v));
#endif
  Shorts numbers = __builtin_convertvector((Word)v, Shorts);
  __builtin_memcpy(to, &numbers, static_cast<size_t>(min(n, kLanes)) * 2);
}

// round(x) + zero, clamped; 0 for NaN.
inline Int rounded(Vec x, Vec zero, float lo, float hi) {
  Vec y = clamp(round(x) + zero, lo, hi);
  return to_int(select(y == y, y, Vec{}));
}

// The nearest integer, halves to even; INT32_MIN for NaN and beyond 31 bits.
inline Int to_nearest_int(Vec v) {
#if RLX_ISA == 2
  return (Int)_mm512_cvtps_epi32(v);
#elif RLX_ISA == 1
  return (Int)_mm256_cvtps_epi32(v);
#else
  return (Int)_mm_cvtps_epi32(v);
#endif
}
inline bool all_below(Vec v, float limit) {
#if RLX_ISA == 2
  return _mm512_cmp_ps_mask(v, splat(limit), _CMP_NLT_UQ) == 0;
#elif RLX_ISA == 1
  return _mm256_movemask_ps(_mm256_cmp_ps(v, splat(limit), _CMP_NLT_UQ)) == 0;
#else
  return _mm_movemask_ps(_mm_cmpnlt_ps(v, splat(limit))) == 0;
#endif
}

// 1 / scale, or NaN where a product with it may be far from the quotient.
inline Vec inverse_of(float scale) {
  constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
  float size = std::abs(scale);
  return splat(size >= kLeast && size <= kMost ? 1 / scale : kNan);
}
// round(x / scale) + zero, clamped to 8 bits; 0 for NaN. A product with the inverse, which is one of `inverse_of`,
// rounds to the same number unless it is close to the middle of two: then x is divided. (It is 2^-22 of the quotient
// away at most, and all quotients above 2^9 are clamped.)
inline Int quantized_to_8_bits(Vec x, Vec scale, Vec inverse, Int zero, int32_t lo, int32_t hi) {
  Vec quotient = x * inverse;
  Int nearest = to_nearest_int(quotient), least = splat(lo) - zero, most = splat(hi) - zero;
  if (!all_below(abs(quotient - to_float(nearest)), 0.5f - 0x1p-13f))
    return rounded(x / scale, to_float(zero), static_cast<float>(lo), static_cast<float>(hi));
  nearest = nearest > least ? nearest : least;
  return (nearest < most ? nearest : most) + zero;
}
