// SPDX-License-Identifier: Apache-2.0
// Normalisation over neighbouring channels, by vector lengths, by batch statistics, and with parameters that depend on
// the input.
#include "ops/expr.h"

namespace rlx {

// Squares summed over neighbouring channels.
Outputs decompose_lrn(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  if (x.rank() < 2)
    return refuse(x, Code::kShape, format("x needs a batch and a channel axis, it has rank {}", x.rank()));
  int64_t size = attrs.i64("size");
  Axes window(x.rank(), 1);
  std::vector<Dim> lo(x.rank(), 0), hi(x.rank(), 0);
  window[1] = size, lo[1] = (size - 1) / 2, hi[1] = size / 2;
  Expr squares =
      in.builder().op(Op::kReduceWindow, {x * x}, {{"fn", "sum"}, {"window", window}, {"pad_lo", lo}, {"pad_hi", hi}});
  Expr base = squares * (attrs.f64("alpha") / static_cast<double>(size)) + attrs.f64("bias");
  return {x / binary(Op::kPow, base, scalar_like(base, attrs.f64("beta")))};
}

Outputs decompose_lp_norm(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  NamedAttrs along{{"axes", Axes{attrs.i64("axis")}}, {"keep_dims", int64_t{1}}};
  Expr length = in.builder().op(attrs.i64("p") == 1 ? Op::kReduceL1 : Op::kReduceL2, {x}, along);
  return {x / where(equal(length, 0), 1, length)};
}

Outputs decompose_mean_variance_norm(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  NamedAttrs along{{"axes", attrs.i64s("axes")}, {"keep_dims", int64_t{1}}};
  return {(x - mean(x, attrs.i64s("axes"))) / (in.builder().op(Op::kStd, {x}, along) + 1e-9)};
}

// ---- statistics of the batch ----

Outputs decompose_batch_norm_train(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  if (x.rank() < 2)
    return refuse(x, Code::kShape, format("x needs a batch and a channel axis, it has rank {}", x.rank()));
  std::array channels{x.dim(1)};
  for (size_t i = 1; i < 5; i++) {
    if (!require_shape(in[i], b.graph().info(Op::kBatchNormTrain).signature.in[i].name, channels)) return {};
    if (in[i].dtype() != x.dtype()) return refuse(x, Code::kDtype, "the parameters must have the dtype of x");
  }
  Axes others{0};
  for (int64_t axis : trailing_axes(2, x.rank())) others.push_back(axis);
  std::vector<Dim> along(x.rank() - 1, 1), flat{x.dim(1)};
  along[0] = x.dim(1);
  Expr mu = mean(x, others), c = x - mu, variance = mean(c * c, others);
  Expr inv_std = 1.0 / sqrt(variance + attrs.f64("eps"));
  Expr y = c * inv_std * reshape(in[1], along) + reshape(in[2], along);
  double kept = attrs.f64("momentum");
  auto updated = [&](Expr running, Expr now) { return running * kept + reshape(now, flat) * (1 - kept); };
  return {y, updated(in[3], mu), updated(in[4], variance), reshape(mu, flat), reshape(inv_std, flat)};
}

// ---- parameters of the input ----

Outputs decompose_ada_layer_norm(const Inputs& in, const Attrs& attrs) {
  Expr y = in.builder().op(Op::kLayerNorm, {in[0]}, {{"eps", attrs.f64("eps")}});
  y = y * (1.0 + in[1]) + in[2];
  if (!require_shape(y, "the result", in[0].dims())) return {};
  return {y};
}

Outputs decompose_gated_residual(const Inputs& in, const Attrs&) {
  Expr y = in[0] + in[1] * in[2];
  if (!require_shape(y, "the result", in[0].dims())) return {};
  return {y};
}

}  // namespace rlx
