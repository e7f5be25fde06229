// SPDX-License-Identifier: Apache-2.0
// Normalisation (OPS.md 5.4): each composite is its formula; half inputs arrive as f32 (W).
#include "ops/expr.h"

namespace rlx {

Outputs decompose_softmax(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  Axes axis{attrs.i64("axis")};
  Expr e = exp(x - stop_gradient(reduce(x, "max", axis)));
  return {e / sum(e, axis)};
}

// A half gamma or beta is widened by W already; an f32 one beside an f64 x is cast here (T2 d).
static Expr like(Expr x, Expr parameter) {
  return cast(parameter, x.dtype());
}

Outputs decompose_layer_norm(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], gamma = in[1], beta = in[2];
  Axes axes = trailing_axes(attrs.i64("axis"), x.rank());
  Expr mu = mean(x, axes), c = x - mu;
  Expr inv_std = 1.0 / sqrt(mean(c * c, axes) + attrs.f64("eps"));
  Expr y = c * inv_std;
  if (gamma) y = y * like(x, gamma);
  if (beta) y = y + like(x, beta);
  return {y, mu, inv_std};
}

Outputs decompose_rms_norm(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], gamma = in[1], beta = in[2];
  Axes axes = trailing_axes(attrs.i64("axis"), x.rank());
  Expr inv_rms = 1.0 / sqrt(mean(x * x, axes) + attrs.f64("eps"));
  Expr y = x * inv_rms;
  if (gamma) y = y * like(x, gamma);
  if (beta) y = y + like(x, beta);
  return {y, inv_rms};
}

// x + res + bias, normalised before the sum is rounded.
static Outputs residual_norm(Op norm, const Inputs& in, const Attrs& attrs) {
  Expr total = in[0] + in[1];
  if (in[2]) total = total + in[2];
  return {total.builder().op(norm, {total, in[3], in[4]}, {{"eps", attrs.f64("eps")}}), total};
}

Outputs decompose_residual_layer_norm(const Inputs& in, const Attrs& attrs) {
  return residual_norm(Op::kLayerNorm, in, attrs);
}
Outputs decompose_residual_rms_norm(const Inputs& in, const Attrs& attrs) {
  return residual_norm(Op::kRmsNorm, in, attrs);
}

}  // namespace rlx
