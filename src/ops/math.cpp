// SPDX-License-Identifier: Apache-2.0
// Elementwise mathematics: each composite is its formula, in a form that stays accurate where the obvious one cancels
// or overflows.
#include <cmath>
#include <numbers>

#include "ops/expr.h"

namespace rlx {

// ---- rounding and signs ----

Outputs decompose_ceil(const Inputs& in, const Attrs&) {
  return {-floor(-in[0])};
}
Outputs decompose_trunc(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  return {where(less(x, 0), unary(Op::kCeil, x), floor(x))};
}

Outputs decompose_sign(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  if (dtypes::U.has(x.dtype())) return {minimum(x, 1)};
  return {where(greater(x, 0), 1, where(less(x, 0), -1, x))};
}

// ---- powers and logarithms ----

Outputs decompose_recip(const Inputs& in, const Attrs&) {
  return {1.0 / in[0]};
}
Outputs decompose_rsqrt(const Inputs& in, const Attrs&) {
  return {1.0 / sqrt(in[0])};
}
Outputs decompose_square(const Inputs& in, const Attrs&) {
  return {in[0] * in[0]};
}
Outputs decompose_exp2(const Inputs& in, const Attrs&) {
  return {binary(Op::kPow, scalar_like(in[0], 2), in[0])};
}
Outputs decompose_log2(const Inputs& in, const Attrs&) {
  return {log(in[0]) * std::numbers::log2e};
}
Outputs decompose_log10(const Inputs& in, const Attrs&) {
  return {log(in[0]) * std::numbers::log10e};
}

// ---- angles ----

Outputs decompose_tan(const Inputs& in, const Attrs&) {
  return {unary(Op::kSin, in[0]) / unary(Op::kCos, in[0])};
}
Outputs decompose_asin(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  return {atan2(x, sqrt((1.0 - x) * (1.0 + x)))};
}
Outputs decompose_acos(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  return {2.0 * atan2(sqrt(1.0 - x), sqrt(1.0 + x))};
}
Outputs decompose_atan(const Inputs& in, const Attrs&) {
  return {atan2(in[0], scalar_like(in[0], 1))};
}

// ---- hyperbolic ----

Outputs decompose_sinh(const Inputs& in, const Attrs&) {
  Expr a = abs(in[0]), e = expm1(a);
  Expr root = exp(0.5 * a);  // exp(a) would overflow before exp(a) / 2 does
  Expr small = 0.5 * (e + e / (e + 1.0)), large = (0.5 * root) * root - 0.5 * exp(-a);
  return {unary(Op::kSign, in[0]) * where(less(a, 1), small, large)};
}
Outputs decompose_cosh(const Inputs& in, const Attrs&) {
  Expr a = abs(in[0]), root = exp(0.5 * a);
  return {(0.5 * root) * root + 0.5 * exp(-a)};
}

// Beyond this, x*x + 1 equals x*x even in f64, and x*x may overflow although the logarithm does not.
static constexpr double kLarge = 0x1p28;

Outputs decompose_asinh(const Inputs& in, const Attrs&) {
  Expr a = abs(in[0]), square = a * a;
  Expr small = log1p(a + square / (1.0 + sqrt(square + 1.0)));
  return {unary(Op::kSign, in[0]) * where(greater(a, kLarge), log(a) + std::numbers::ln2, small)};
}
Outputs decompose_acosh(const Inputs& in, const Attrs&) {
  Expr x = in[0], t = x - 1.0;
  Expr root = sqrt(t) * sqrt(x + 1.0);  // two roots, so that x far below 1 gives NaN instead of cancelling t
  return {where(greater(x, kLarge), log(x) + std::numbers::ln2, log1p(t + root))};
}
Outputs decompose_atanh(const Inputs& in, const Attrs&) {
  Expr a = abs(in[0]);  // with x itself, the quotient for x near -1 would be near -1, where log1p magnifies rounding
  return {unary(Op::kSign, in[0]) * (0.5 * log1p(2.0 * a / (1.0 - a)))};
}

// ---- division that rounds down ----

// Whether truncated and floor division differ, given the remainder r of the truncated division by b.
static Expr rounds_up(Expr r, Expr b) {
  Expr inexact = logical_and(not_equal(b, 0), not_equal(r, 0));
  return logical_and(inexact, exclusive_or(less(r, 0), less(b, 0)));
}

Outputs decompose_floor_div(const Inputs& in, const Attrs&) {
  Expr a = in[0], b = in[1], q = a / b;
  if (is_float(a.dtype())) return {floor(q)};
  return {where(rounds_up(binary(Op::kRem, a, b), b), q - 1.0, q)};
}
Outputs decompose_floor_mod(const Inputs& in, const Attrs&) {
  Expr b = in[1], r = binary(Op::kRem, in[0], b);
  return {where(rounds_up(r, b), r + b, r)};
}

}  // namespace rlx
