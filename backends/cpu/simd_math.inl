// SPDX-License-Identifier: Apache-2.0
// Elementary functions and activations on a Vec, within 4 ulp for every f32 (semantics.md C2). Those whose names end in
// `near` are for epilogues of products and of class ACT (C4). NaN stays NaN everywhere. Polynomials are minimax fits
// (Remez, weighted by the relevant error) on the interval given beside each; the accuracy test covers all exponents.

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kLog2E = 1.44269504f;
// ln 2 in two parts; the first has 15 bits, so that n * kLn2Hi is exact for |n| < 2^9 without a fused multiply.
inline constexpr float kLn2Hi = 0.693145752f, kLn2Lo = 1.42860677e-06f;

// Horner's rule; the first coefficient belongs to the highest power.
template <class... Rest>
inline Vec polynomial(Vec x, float highest, Rest... rest) {
  Vec y = splat(highest);
  ((y = fma(y, x, static_cast<float>(rest))), ...);
  return y;
}

struct ExpParts {
  Vec n, r;  // x = n ln 2 + r, n whole, |r| <= ln 2 / 2
};
inline ExpParts split_exp(Vec x) {
  Vec n = round(x * kLog2E);
  Vec r = fma(n, -kLn2Hi, x);
  return {n, fma(n, -kLn2Lo, r)};
}

inline Vec exp_less_one(Vec r) {  // e^r - 1
  Vec q = polynomial(r, 0.00138144672f, 0.00836878084f, 0.0416683927f, 0.166665196f, 0.49999994f);
  return fma(r * r, q, r);
}
inline Vec exp(Vec x) {
  auto [n, r] = split_exp(clamp(x, -110.0f, 89.0f));  // beyond these bounds the result is 0 or inf anyway
  return scale_by_power(exp_less_one(r) + 1.0f, n);
}

inline Vec exp_of_negative(Vec x) {  // x <= 0
  auto [n, r] = split_exp(raw_max(splat(-110.0f), x));
  return scale_by_power(exp_less_one(r) + 1.0f, n);
}

// 2^t for |t| < 200, with a relative error of 2^-23: for results of class ACT or ATT.
inline Vec exp2_near(Vec t) {
  Vec n = round(t), r = t - n;
  return scale_by_power(polynomial(r, 0.00134072627f, 0.00967187528f, 0.0555030853f, 0.24022235f, 0.693147242f, 1.0f),
                        n);
}

inline Vec close_exp_less_one(Vec r) {  // the same for a result of which 1 is not the larger part
  Vec q = polynomial(r, 0.00019845886f, 0.00139407197f, 0.00833338965f, 0.0416663587f, 0.166666657f, 0.5f);
  return fma(r * r, q, r);
}
inline Vec expm1(Vec x) {
  auto [n, r] = split_exp(clamp(x, -30.0f, 89.0f));  // below -30 the result is -1 anyway
  Vec p = close_exp_less_one(r);
  // 2^n p + (2^n - 1), doubled last, because 2^128 is not an f32. For n = 0 this is exactly p.
  Vec half = scale_by_power(splat(0.5f), n);
  Vec y = fma(p, half, half - 0.5f);
  return select(n == splat(0.0f), select(r == splat(0.0f), x, p), y + y);
}

struct LogParts {
  Vec e, f;  // x = 2^e (1 + f), 1 + f in [sqrt 1/2, sqrt 2)
};
inline LogParts split_log(Vec x) {  // x normal and positive
  Int offset = splat(0x3f3504f3);   // sqrt 1/2
  Int shifted = (Int)((Word)bits(x) - (Word)offset);
  Int e = shifted >> 23;
  return {to_float(e), from_bits((shifted & splat(0x007fffff)) + offset) - 1.0f};
}
// log(1 + f) - f, for 1 + f in [sqrt 1/2, sqrt 2)
inline Vec log1p_rest(Vec f) {
  Vec q = polynomial(f, 0.0674664974f, -0.116756544f, 0.118881591f, -0.124055885f, 0.142195523f, -0.166679963f,
                     0.200021192f, -0.250000089f, 0.333333135f);
  return f * f * fma(f, q, -0.5f);
}
inline Vec log_specials(Vec x, Vec y) {
  y = select(x == splat(kInf), x, y);
  y = select(x == splat(0.0f), splat(-kInf), y);
  return select(x >= splat(0.0f), y, splat(kNan));
}

inline Vec log(Vec x) {
  Int tiny = x < splat(std::numeric_limits<float>::min());
  auto [e, f] = split_log(select(tiny, x * 8388608.0f, x));
  e = select(tiny, e - 23.0f, e);
  Vec y = fma(e, kLn2Hi, f + fma(e, kLn2Lo, log1p_rest(f)));
  return log_specials(x, y);
}

// With u = 1 + x rounded: log(u) + (rounding error of u) / u.
inline Vec log1p(Vec x) {
  Vec u = x + 1.0f;
  Vec lost = select(x > splat(1.0f), 1.0f - (u - x), x - (u - 1.0f)) / u;
  auto [e, f] = split_log(u);
  Vec rest = fma(e, kLn2Lo, lost + log1p_rest(f));
  Vec y = log_specials(u, fma(e, kLn2Hi, f + rest));
  return select(abs(x) < splat(1e-7f), x, select(u == splat(kInf), x, y));
}

// t / (t + 2) for t = e^2|x| - 1; for |x| >= 10 the result is 1.
inline Vec tanh(Vec x) {
  auto [n, r] = split_exp(2.0f * raw_min(splat(10.0f), abs(x)));
  Vec power = scale_by_power(splat(1.0f), n), t = fma(close_exp_less_one(r), power, power - 1.0f);
  return copysign(t / (t + 2.0f), x);
}

// Near 0: x P(x^2). Beyond: 1 - e^-t(1 + P(t)), fitted to log erfc on [0.92, 4]; from 4 on the result is 1.
inline Vec erf(Vec x) {
  Vec t = abs(x), s = x * x;
  Vec near = polynomial(s, 8.26362302e-05f, -0.000811713806f, 0.00519874459f, -0.026858462f, 0.112836786f,
                        -0.376126319f, 1.12837917f);
  Vec u = raw_min(splat(4.0f), t);
  Vec far = polynomial(u, 1.15223311e-05f, -0.000325653062f, 0.00365376519f, -0.023785349f, 0.106263146f, 0.635135889f,
                       0.128652155f);
  far = 1.0f - exp_of_negative(-fma(u, far, u));
  return select(t < splat(0.93f), x * near, copysign(far, x));
}

// Sine and cosine in quadrants: x = n pi/2 + r. The reduction runs in f64 with pi/2 in two parts. The first part has 33
// bits, so that n times it is exact for n < 2^20. Beyond 10^5 the C library reduces the lane.
inline constexpr int kHalf = kLanes / 2;
using HalfVec [[gnu::vector_size(4 * kHalf)]] = float;
using HalfDouble [[gnu::vector_size(8 * kHalf)]] = double;

inline Vec reduce_quadrant(Vec x, Vec n) {
  HalfVec xs[2], ns[2], rs[2];
  __builtin_memcpy(xs, &x, sizeof x);
  __builtin_memcpy(ns, &n, sizeof n);
  for (int i = 0; i < 2; ++i) {
    HalfDouble xd = __builtin_convertvector(xs[i], HalfDouble), nd = __builtin_convertvector(ns[i], HalfDouble);
    rs[i] = __builtin_convertvector(xd - nd * 1.5707963267341256 - nd * 6.0771005065061922e-11, HalfVec);
  }
  Vec r;
  __builtin_memcpy(&r, rs, sizeof r);
  return r;
}

// sin(x + quarter pi/2), quarter 0 or 1
inline Vec sin_quarter(Vec x, int quarter) {
  Int large = ~(abs(x) < splat(1e5f));  // and NaN
  Vec small = select(large, splat(0.0f), x);
  Vec n = round(small * 0.636619772f);
  Vec r = reduce_quadrant(small, n), s = r * r;
  Int quadrant = to_int(n) + splat(quarter);
  Vec sine = fma(r * s, polynomial(s, 2.71830254e-06f, -0.000198393333f, 0.00833332911f, -0.166666672f), r);
  Vec cosine = fma(s * s, polynomial(s, 2.44383646e-05f, -0.00138873665f, 0.0416666456f), fma(s, -0.5f, splat(1.0f)));
  Vec y = select((quadrant & splat(1)) != splat(0), cosine, sine);
  y = from_bits(bits(y) ^ ((quadrant & splat(2)) << 30));
  for (int i = 0; i < kLanes; ++i) {
    if (large[i]) y[i] = quarter ? std::cos(x[i]) : std::sin(x[i]);
  }
  return y;
}
inline Vec sin(Vec x) {
  return select(x == splat(0.0f), x, sin_quarter(x, 0));  // -0 stays
}
inline Vec cos(Vec x) {
  return sin_quarter(x, 1);
}

// The sum of the hard ones cancels where they leave 0.
inline Vec fma_once(Vec a, Vec b, Vec c) {
#if RLX_ISA == 0
  for (int i = 0; i < kLanes; ++i) c[i] = static_cast<float>(double{a[i]} * b[i] + c[i]);
  return c;
#else
  return fma(a, b, c);
#endif
}
inline Vec hard_sigmoid(Vec x) {
  return clamp(fma_once(x, splat(0.2f), splat(0.5f)), 0, 1);
}
inline Vec hard_swish(Vec x) {
  return x * clamp(fma_once(x, splat(1.0f / 6), splat(0.5f)), 0, 1);
}
inline Vec relu(Vec x) {
  return raw_max(splat(0.0f), x);
}

inline Vec sigmoid(Vec x) {
  return 1.0f / (exp(-x) + 1.0f);
}
// x e^x = x (1 + s) 2^n, scaled last, because e^x may be subnormal where x e^x is still normal. -inf gives NaN.
inline Vec times_exp(Vec x, Vec s, Vec n) {
  Vec near = raw_max(splat(-110.0f), x);
  return select(x == splat(-kInf), splat(kNan), scale_by_power(fma_once(near, s, near), n));
}
// Below 0 as x e^x / (1 + e^x).
inline Vec silu(Vec x) {
  auto [n, r] = split_exp(raw_max(splat(-110.0f), -abs(x)));
  Vec s = exp_less_one(r), power = scale_by_power(s + 1.0f, n);
  return select(x < splat(0.0f), times_exp(x, s, n), x) / (power + 1.0f);
}
// x tanh(log(1 + e)) = x e (e + 2) / d = x (1 - 2 / d) for e = e^x, d = e (e + 2) + 2. From 20 on the result is x.
inline Vec mish(Vec x) {
  auto [n, r] = split_exp(clamp(x, -110.0f, 20.0f));
  Vec s = exp_less_one(r), e = scale_by_power(s + 1.0f, n), product = times_exp(x, s, n);
  Int below = x < splat(0.0f);
  Vec above = fma_once(product, e, product + product), d = fma_once(e, e + 2.0f, splat(2.0f));
  Vec quotient = select(below, above, splat(2.0f)) / d;
  return select(below, quotient, x * (1.0f - quotient));
}
// x Phi(x) = (h + |h|) - |h| erfc(|x| / sqrt 2) for h = x / 2: no cancellation, and -inf gives NaN, as by the
// definition. log2 erfc(a / sqrt 2) is fitted on [0, 6], weighted by a^2 erfc. The fit keeps falling up to 14, where 2
// to its power is 0.
inline Vec gelu_near(Vec x) {
  Vec h = x * 0.5f, a = raw_min(splat(14.0f), abs(x));
  Vec p = polynomial(a, 2.99240874e-05f, -0.000739873154f, 0.00797745865f, -0.0532381795f, -0.458915681f, -1.15114713f);
  return fma(a * -0.5f, exp2_near(a * p), h + abs(h));
}

// x (1 + tanh u) / 2 = x / (1 + e^-2u)
inline Vec gelu_tanh_near(Vec x) {
  Vec minus_2u = x * fma(x * x, splat(-0.0713548163f), splat(-1.59576912f));
  return x / (exp(minus_2u) + 1.0f);
}

using HalfLong [[gnu::vector_size(8 * kHalf)]] = int64_t;
template <HalfDouble (*f)(HalfDouble)>
inline Vec in_doubles(Vec x) {
  HalfVec xs[2];
  __builtin_memcpy(xs, &x, sizeof x);
  for (HalfVec& half : xs) half = __builtin_convertvector(f(__builtin_convertvector(half, HalfDouble)), HalfVec);
  __builtin_memcpy(&x, xs, sizeof x);
  return x;
}
template <class... Rest>
inline HalfDouble polynomial(HalfDouble x, double highest, Rest... rest) {
  HalfDouble y = highest - HalfDouble{};
  ((y = y * x + rest), ...);
  return y;
}

// Relative error 5e-9, for |x| < 700. The sum with 1.5 2^52 has the whole number n in its lowest bits.
inline HalfDouble exp(HalfDouble x) {
  HalfDouble shifted = x * 1.4426950408889634 + 6755399441055744.0, n = shifted - 6755399441055744.0;
  HalfDouble r = x - n * 0.693147180559945;
  HalfDouble p = polynomial(r, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0);
  return (HalfDouble)((HalfLong)p + ((HalfLong)shifted << 52));
}

// The exponent of a tail needs more digits than f32 has: it is the sum of two numbers, or, without a fused
// multiply-add, in f64.
#if RLX_ISA > 0

// a erfc(a / sqrt 2) / 2 = e^(-a a / 2) q P(q / 2 - 1) for q = a / (a / 4 + 1), fitted on [0, 14]. Scaled last, because
// the power alone may be subnormal.
inline Vec gelu_tail(Vec a) {
  Vec q = a / fma(a, 0.25f, splat(1.0f)), u = fma(q, 0.5f, splat(-1.0f)), square = a * a;
  Vec p = polynomial(u, -3.23823297e-05f, 4.61570016e-05f, 0.000392964605f, -0.000878745341f, -0.00188168173f,
                     0.0151010361f, -0.0466307998f, 0.0967842191f, -0.151974156f, 0.188821286f);
  auto [n, r] = split_exp(square * -0.5f);
  Vec lost = fma(a, a, -square);
  return scale_by_power(q * fma(p, exp_less_one(fma(lost, -0.5f, r)), p), n);
}
// x Phi(x) = (h + |h|) - tail(|x|) for h = x / 2. -inf gives NaN as the definition does.
inline Vec gelu(Vec x) {
  Vec h = x * 0.5f, large = h + abs(h);
  return large - gelu_tail(raw_min(splat(14.0f), abs(x)));
}

// x (1 + tanh u) / 2 = x / (1 + e^-2u), and below 0 x e^2u / (1 + e^2u); e^(-2 * 12 ...) is 0.
inline Vec gelu_tanh(Vec x) {
  constexpr float kOne = 1.59576917f, kOneRest = -4.53406805e-08f, kThree = 0.0713548139f, kThreeRest = 2.39883247e-09f;
  Vec a = raw_min(splat(12.0f), abs(x)), s = a * a, s_rest = fma(a, a, -s);
  // 2 |u| = a (kOne + kThree a a)
  Vec p = s * kThree, w = p + kOne, part = w - p;
  Vec w_rest = (p - (w - part)) + (kOne - part) + fma(s, splat(kThree), -p);
  w_rest += fma(s_rest, kThree, fma(s, splat(kThreeRest), kOneRest));
  Vec m = a * w, m_rest = fma(a, w_rest, fma(a, w, -m));
  auto [n, r] = split_exp(-m);
  Vec e = exp_less_one(r - m_rest), power = scale_by_power(e + 1.0f, n), near = raw_max(splat(-12.0f), x);
  Vec y = select(x < splat(0.0f), scale_by_power(fma(near, e, near), n), x) / (power + 1.0f);
  return select(x == splat(-kInf), splat(kNan), y);
}

#else

// a erfc(a / sqrt 2) / 2, where erfc(a / sqrt 2) / 2 = e^(-a a / 2) q P(q) for q = 1 / (a + 2.5), fitted on [0, 14].
inline HalfDouble gelu_tail(HalfDouble a) {
  HalfDouble q = 1.0 / (a + 2.5);
  HalfDouble p = polynomial(q, -236.013866075, 845.778111736, -1210.56437084, 888.944227842, -338.408235481,
                            55.2862478876, -6.73336208242, 3.99076682088, 2.0531996428, 0.998646546885, 0.398924825505);
  return exp(a * a * -0.5) * p * q * a;
}
// x Phi(x) = (h + |h|) - tail(|x|) for h = x / 2. -inf gives NaN as the definition does.
inline Vec gelu(Vec x) {
  Vec h = x * 0.5f, large = h + abs(h);
  return large - in_doubles<gelu_tail>(raw_min(splat(14.0f), abs(x)));
}

inline HalfDouble gelu_tanh_within(HalfDouble x) {
  HalfDouble minus_2u = x * (x * x * -0.07135481627159854 - 1.5957691216057308);
  return x / (exp(minus_2u) + 1.0);
}
// x (1 + tanh u) / 2 = x / (1 + e^-2u)
inline Vec gelu_tanh(Vec x) {
  Vec y = in_doubles<gelu_tanh_within>(clamp(x, -14.0f, 14.0f));
  y = select(x > splat(14.0f), x, y);
  return select(x == splat(-kInf), splat(kNan), select(x == x, y, x));
}

#endif

inline Vec softplus(Vec x) {
  return max(x, splat(0.0f)) + log1p(exp(-abs(x)));
}
