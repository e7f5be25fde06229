// SPDX-License-Identifier: Apache-2.0
// Functions of two vectors: the angle of a point, and what a division leaves.

// On the first eighth of a circle t (1 + s P(s)) for s = t^2, fitted on [0, 1]; the others mirror it.
inline Vec atan2(Vec y, Vec x) {
  Vec wide = abs(x), high = abs(y), longest = raw_max(wide, high), shortest = raw_min(wide, high);
  Vec t = select(longest == splat(0.0f), splat(0.0f), shortest / longest);
  t = select(shortest == splat(kInf), splat(1.0f), t);
  Vec s = t * t;
  Vec p = polynomial(s, -0.00179358909f, 0.0109144608f, -0.0311775785f, 0.0579573251f, -0.084034346f, 0.109521806f,
                     -0.142642409f, 0.199985489f, -0.333332986f);
  Vec r = fma(t * s, p, t);
  r = select(high > wide, 1.57079637f - r - 4.37113883e-08f, r);
  r = select(bits(x) < splat(0), 3.14159274f - r - 8.74227766e-08f, r);
  return select(x == x, select(y == y, copysign(r, y), y), x);
}

// a - q b for a, b >= 0 and q = a / b cut off, below 2^27: such a quotient of f32 lies farther from a whole number than
// an f64 rounds, and the product is exact.
inline HalfVec rest_of(HalfVec low_a, HalfVec low_b) {
  using HalfInt [[gnu::vector_size(4 * kHalf)]] = int32_t;
  HalfDouble a = __builtin_convertvector(low_a, HalfDouble), b = __builtin_convertvector(low_b, HalfDouble);
  HalfDouble q = __builtin_convertvector(__builtin_convertvector(a / b, HalfInt), HalfDouble);
  return __builtin_convertvector(a - q * b, HalfVec);
}
inline Vec fmod(Vec a, Vec b) {
  a = as_compared(a), b = as_compared(b);
  Vec x = abs(a), y = abs(b);
  Int large = ~(x / y < splat(0x1p27f)) | (y == splat(kInf));  // and NaN
  x = select(large, splat(0.0f), x), y = select(large, splat(1.0f), y);
  HalfVec xs[2], ys[2];
  __builtin_memcpy(xs, &x, sizeof x);
  __builtin_memcpy(ys, &y, sizeof y);
  for (int i = 0; i < 2; ++i) xs[i] = rest_of(xs[i], ys[i]);
  __builtin_memcpy(&x, xs, sizeof x);
  Vec rest = copysign(x, a);
  for (int i = 0; i < kLanes; ++i) {
    if (large[i]) rest[i] = std::fmod(a[i], b[i]);
  }
  return rest;
}
