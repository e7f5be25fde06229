// SPDX-License-Identifier: Apache-2.0
// a^b in f64, as 2^(b log2 |a|). The product may be as large as 150. For results within 4 ulp its error may be 2^-26.

// log2 of normal positive numbers, with an error of 2^-38. x = 2^e m, m in [sqrt 1/2, sqrt 2), and
// log m = 2 artanh s = 2 (s + s^3 / 3 + s^5 / 5 ...) for s = (m - 1) / (m + 1), |s| < 0.172.
inline HalfDouble log2_near(HalfDouble x) {
  const HalfLong offset = int64_t{0x3fe6a09e667f3bcd} - HalfLong{};  // sqrt 1/2
  HalfLong shifted = (HalfLong)x - offset;
  // The exponent in the lowest bits of 1.5 2^52: no conversion from 64 bits is needed.
  HalfDouble e = (HalfDouble)((shifted >> 52) + int64_t{0x4338000000000000}) - 6755399441055744.0;
  HalfDouble m = (HalfDouble)((shifted & int64_t{0x000fffffffffffff}) + offset), s = (m - 1.0) / (m + 1.0);
  constexpr double kScale = 2 * 1.4426950408889634;
  return e + s * polynomial(s * s, kScale / 15, kScale / 13, kScale / 11, kScale / 9, kScale / 7, kScale / 5,
                            kScale / 3, kScale);
}

// For finite a > 0 and finite b.
inline Vec pow_within(Vec a, Vec b) {
  HalfVec as[2], bs[2];
  __builtin_memcpy(as, &a, sizeof a);
  __builtin_memcpy(bs, &b, sizeof b);
  for (int i = 0; i < 2; ++i) {
    HalfDouble t = __builtin_convertvector(bs[i], HalfDouble) * log2_near(__builtin_convertvector(as[i], HalfDouble));
    t = t < -200.0 ? -200.0 - HalfDouble{} : t > 200.0 ? 200.0 - HalfDouble{} : t;
    as[i] = __builtin_convertvector(exp(t * 0.69314718055994531), HalfVec);
  }
  __builtin_memcpy(&a, as, sizeof a);
  return a;
}

inline bool has_lane(Int mask) {
#if RLX_ISA == 2
  return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) != 0;
#elif RLX_ISA == 1
  return _mm256_movemask_ps((__m256)mask) != 0;
#else
  return _mm_movemask_ps((__m128)mask) != 0;
#endif
}

// -|x|^b for whole b: |x|^b, or -|x|^b for odd b. From 2^24 on all b are even.
inline Vec with_sign(Vec a, Vec b, Vec y) {
  Vec half = b * 0.5f;
  Int is_whole = floor(b) == b, is_odd = is_whole & (floor(half) != half), is_negative = bits(a) < splat(0);
  y = select(is_negative & is_odd, -y, y);
  return select(is_negative & ~is_whole & (a != Vec{}), splat(kNan), y);
}

// Most of what graphs compute by pow are squares and cubes.
inline Vec pow(Vec a, Vec b) {
  if (!has_lane(b != splat(2.0f))) return a * a;
  if (!has_lane(b != splat(3.0f))) return a * a * a;
  a = as_compared(a), b = as_compared(b);
  Vec size = abs(a);
  Int is_usual = (a > Vec{}) & (a < splat(kInf)) & (abs(b) < splat(kInf));
  if (!has_lane(~is_usual)) return pow_within(a, b);
  Int is_zero = (size == Vec{}) & (b > Vec{}) & (b < splat(kInf));
  Int is_within = (size > Vec{}) & (size < splat(kInf)) & (abs(b) < splat(kInf));
  Vec y = pow_within(select(is_within, size, splat(1.0f)), select(is_within, b, splat(1.0f)));
  y = with_sign(a, b, select(is_zero, Vec{}, y));
  Int others = ~(is_zero | is_within);
  if (!has_lane(others)) return y;
  for (int i = 0; i < kLanes; ++i)
    if (others[i]) y[i] = std::pow(a[i], b[i]);
  return y;
}
