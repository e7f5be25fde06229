// SPDX-License-Identifier: Apache-2.0
// Elementwise composites (OPS.md 5.1): each is its formula.
#include <cmath>
#include <numbers>

#include "ops/expr.h"

namespace rlx {

Outputs decompose_recip(const Inputs& in, const Attrs&) {
  return {1.0 / in[0]};
}
Outputs decompose_rsqrt(const Inputs& in, const Attrs&) {
  return {1.0 / sqrt(in[0])};
}
Outputs decompose_square(const Inputs& in, const Attrs&) {
  return {in[0] * in[0]};
}

Outputs decompose_gt(const Inputs& in, const Attrs&) {
  return {less(in[1], in[0])};
}
Outputs decompose_ge(const Inputs& in, const Attrs&) {
  return {less_equal(in[1], in[0])};
}
Outputs decompose_is_nan(const Inputs& in, const Attrs&) {
  return {logical_not(equal(in[0], in[0]))};
}
Outputs decompose_ne(const Inputs& in, const Attrs&) {
  return {logical_not(equal(in[0], in[1]))};
}

// All bits one: -1 of a signed type, the largest value of an unsigned one, true.
Outputs decompose_bit_not(const Inputs& in, const Attrs&) {
  Expr x = in[0];
  Expr ones = dtypes::U.has(x.dtype()) ? cast(x.builder().scalar(DType::kI64, -1), x.dtype())
                                       : scalar_like(x, x.dtype() == DType::kBool ? 1 : -1);
  return {binary(Op::kBitXor, x, ones)};
}

Outputs decompose_relu(const Inputs& in, const Attrs&) {
  return {maximum(in[0], scalar_like(in[0], 0))};
}
Outputs decompose_sigmoid(const Inputs& in, const Attrs&) {
  return {1.0 / (1.0 + exp(-in[0]))};
}

Outputs decompose_silu(const Inputs& in, const Attrs& attrs) {
  double beta = attrs.f64("beta");
  return {in[0] * unary(Op::kSigmoid, beta == 1 ? in[0] : in[0] * beta)};
}

Outputs decompose_gelu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  if (attrs.is("approx", "none")) return {0.5 * x * (1.0 + erf(x * (std::numbers::sqrt2 / 2.0)))};
  Expr inner = x + 0.044715 * (x * x * x);
  return {0.5 * x * (1.0 + tanh(std::sqrt(2.0 / std::numbers::pi) * inner))};
}

}  // namespace rlx
