// SPDX-License-Identifier: Apache-2.0
// Halves in vectors of f32, and moves of parts of vectors.

// Whole vectors by moves of a known size, the last of a row by as many bytes as there are. V may be wider than the
// vectors of this instruction set, so it is not returned.
template <class V>
[[gnu::always_inline]] inline void load_part(V& v, const void* from, int64_t bytes) {
  v = V{};
  if (bytes >= static_cast<int64_t>(sizeof v))
    __builtin_memcpy(&v, from, sizeof v);
  else
    __builtin_memcpy(&v, from, static_cast<size_t>(bytes));
}
template <class V>
[[gnu::always_inline]] inline void store_part(void* to, V v, int64_t bytes) {
  if (bytes >= static_cast<int64_t>(sizeof v))
    __builtin_memcpy(to, &v, sizeof v);
  else
    __builtin_memcpy(to, &v, static_cast<size_t>(bytes));
}

// ---- halves: their bits, one half per lane

using Halves [[gnu::vector_size(2 * kLanes)]] = uint16_t;

inline Halves to_f16(Vec v) {
#if RLX_ISA == 2
  return (Halves)_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
#elif RLX_ISA == 1
  return (Halves)_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
#else
  Halves halves;
  for (int i = 0; i < kLanes; ++i) halves[i] = std::bit_cast<uint16_t>(f16(v[i]));
  return halves;
#endif
}
inline Vec from_f16(Halves halves) {
#if RLX_ISA == 2
  return _mm512_cvtph_ps((__m256i)halves);
#elif RLX_ISA == 1
  return _mm256_cvtph_ps((__m128i)halves);
#else
  Vec v;
  for (int i = 0; i < kLanes; ++i) v[i] = static_cast<float>(std::bit_cast<f16>(static_cast<uint16_t>(halves[i])));
  return v;
#endif
}
// The upper half of the bits, rounded to nearest even; a NaN stays NaN.
inline Int to_bf16(Vec v) {
  Int upper = splat(static_cast<int32_t>(0xffff0000)), last = (bits(v) >> 16) & splat(1);
  Int nan = bits(v) | splat(0x400000);
  return (v == v ? bits(v) + splat(0x7fff) + last : nan) & upper;
}
template <class T>
inline Vec load_halves(const T* from, int64_t count) {
  Halves halves;
  load_part(halves, from, 2 * count);
  if (std::is_same_v<T, f16>) return from_f16(halves);
  return from_bits((Int)(__builtin_convertvector(halves, Word) << 16));
}
// Rounds.
inline void store_halves(void* to, Vec v, bool is_bf16, int64_t count) {
  Halves halves = is_bf16 ? __builtin_convertvector((Word)to_bf16(v) >> 16, Halves) : to_f16(v);
  store_part(to, halves, 2 * count);
}
