// SPDX-License-Identifier: Apache-2.0
// Activations: each composite is its formula. NaN stays NaN unless the row says otherwise.
#include <cmath>
#include <numbers>

#include "base/visit.h"
#include "ops/expr.h"

namespace rlx {

// ---- piecewise linear ----

Outputs decompose_clamp(const Inputs& in, const Attrs&) {
  Expr y = in[0];
  if (in[1]) y = maximum(y, in[1]);
  if (in[2]) y = minimum(y, in[2]);
  return {y};
}
Outputs decompose_relu(const Inputs& in, const Attrs&) {
  return {maximum(in[0], 0)};
}
Outputs decompose_leaky_relu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  return {where(less(x, 0), attrs.f64("alpha") * x, x)};
}
Outputs decompose_prelu(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  return {where(less(x, 0), in[1] * x, x)};
}
Outputs decompose_thresholded_relu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  return {where(greater(x, attrs.f64("alpha")), x, 0)};
}

// The nearest integer bounds have the same effect. The dtype need not hold them: then all of its numbers are on one
// side.
static Expr shrunk_integer(Expr x, double low, double high, double bias) {
  auto [least, end] = visit<dtypes::I>(x.dtype(), []<class T>() {
    double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
    return std::pair(std::is_signed_v<T> ? -end : 0.0, end);
  });
  low = std::ceil(low), high = std::floor(high);
  Expr y = scalar_like(x, 0);
  if (high < least) y = x - bias;
  if (high >= least && high < end) y = where(greater(x, high), x - bias, y);
  if (low >= end) y = x + bias;
  if (low >= least && low < end) y = where(less(x, low), x + bias, y);
  return y.rank() == x.rank() ? y : broadcast_to(y, x.dims());
}

Outputs decompose_shrink(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  double low = -attrs.f64("lambd"), high = attrs.f64("lambd"), bias = attrs.f64("bias");
  if (is_integer(x.dtype())) return {shrunk_integer(x, low, high, bias)};
  return {where(less(x, low), x + bias, where(greater(x, high), x - bias, scalar_like(x, 0)))};
}

Outputs decompose_hard_sigmoid(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  return {minimum(maximum(attrs.f64("alpha") * x + attrs.f64("beta"), 0), 1)};
}
Outputs decompose_hard_swish(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  return {x * x.builder().op(Op::kHardSigmoid, {x}, {{"alpha", 1.0 / 6.0}, {"beta", 0.5}})};
}

// ---- exponential below zero ----

Outputs decompose_elu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  return {where(greater(x, 0), x, attrs.f64("alpha") * expm1(minimum(x, 0)))};
}

Outputs decompose_celu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  double alpha = attrs.f64("alpha");
  if (alpha == 0) return {x.builder().fail(Status(Code::kOption, "'alpha' must not be 0"))};
  return {where(greater(x, 0), x, alpha * expm1(minimum(x, 0) / alpha))};
}

Outputs decompose_selu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  return {attrs.f64("gamma") * x.builder().op(Op::kElu, {x}, {{"alpha", attrs.f64("alpha")}})};
}

// ---- smooth gates ----

Outputs decompose_sigmoid(const Inputs& in, const Attrs&) {
  return {1.0 / (1.0 + exp(-in[0]))};
}
Outputs decompose_log_sigmoid(const Inputs& in, const Attrs&) {
  return {-unary(Op::kSoftplus, -in[0])};
}

Outputs decompose_silu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  double beta = attrs.f64("beta");
  return {x * unary(Op::kSigmoid, beta == 1 ? x : beta * x)};
}

Outputs decompose_gelu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  if (attrs.is("approx", "none")) return {0.5 * x * (1.0 + erf(x * (std::numbers::sqrt2 / 2.0)))};
  Expr inner = x + 0.044715 * (x * x * x);
  return {0.5 * x * (1.0 + tanh(std::sqrt(2.0 / std::numbers::pi) * inner))};
}

Outputs decompose_softplus(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  return {maximum(x, 0) + log1p(exp(-abs(x)))};
}
Outputs decompose_softsign(const Inputs& in, const Attrs&) {
  return {in[0] / (1.0 + abs(in[0]))};
}
Outputs decompose_mish(const Inputs& in, const Attrs&) {
  return {in[0] * tanh(unary(Op::kSoftplus, in[0]))};
}

}  // namespace rlx
