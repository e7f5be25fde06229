// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers, added in pairs.

using Half [[gnu::vector_size(4 * kLanes)]] = int16_t;  // twice as many lanes

inline Int add_pairs(Half a, Half b) {
#if RLX_ISA == 2
  return (Int)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif RLX_ISA == 1
  return (Int)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#else
  return (Int)_mm_madd_epi16((__m128i)a, (__m128i)b);
#endif
}
