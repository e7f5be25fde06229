// SPDX-License-Identifier: Apache-2.0
// Normalisation: each composite is its formula; half inputs arrive as f32 (semantics.md N7).
#include "ops/expr.h"

namespace rlx {

Outputs decompose_softmax(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  Axes axis{attrs.i64("axis")};
  Expr e = exp(x - stop_gradient(reduce(x, "max", axis)));
  return {e / sum(e, axis)};
}

Outputs decompose_log_softmax(const Inputs& in, const Attrs& attrs) {
  Axes axis{attrs.i64("axis")};
  Expr z = in[0] - stop_gradient(reduce(in[0], "max", axis));
  return {z - log(sum(exp(z), axis))};
}

// Checks gamma, beta or a statistic: it must have these sizes, and the dtype of x. Beside a half x it may be f32
// (semantics.md T2), but the wide rule (N7) has made both f32 here.
static Expr parameter(Expr x, Expr given, const char* what, std::span<const Dim> dims) {
  if (!require_shape(given, what, dims)) return given;
  if (given.dtype() == x.dtype()) return given;
  return x.builder().fail(
      Status(Code::kDtype, format("{} is {}, x is {} (a cast converts)", what, given.dtype(), x.dtype()))
          .with("input", what));
}

// y * gamma + beta; either may be absent.
static Expr scaled(Expr y, Expr gamma, Expr beta, int64_t axis) {
  if (!y.valid()) return y;
  std::vector<Dim> dims(y.dims().begin() + axis, y.dims().end());
  if (gamma) y = y * parameter(y, gamma, "gamma", dims);
  if (beta) y = y + parameter(y, beta, "beta", dims);
  return y;
}

Outputs decompose_layer_norm(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t axis = attrs.i64("axis");
  Axes axes = trailing_axes(axis, x.rank());
  Expr mu = mean(x, axes), c = x - mu;
  Expr inv_std = 1.0 / sqrt(mean(c * c, axes) + attrs.f64("eps"));
  return {scaled(c * inv_std, in[1], in[2], axis), mu, inv_std};
}

Outputs decompose_rms_norm(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t axis = attrs.i64("axis");
  Expr inv_rms = 1.0 / sqrt(mean(x * x, trailing_axes(axis, x.rank())) + attrs.f64("eps"));
  return {scaled(x * inv_rms, in[1], in[2], axis), inv_rms};
}

// ---- per channel: x is [N, C, ...] ----

static bool has_channels(Expr x) {
  if (x.rank() >= 2) return true;
  x.builder().fail(wrong_rank("x", "2 or more, a batch and a channel axis", x.rank()));
  return false;
}

// A parameter per channel, in a shape that broadcasts against x.
static Expr of_channels(Expr x, Expr given, const char* what) {
  if (!x.valid()) return x;
  std::vector<Dim> dims(x.rank() - 1, 1);
  dims[0] = x.dim(1);
  given = parameter(x, given, what, std::span(dims).first(1));
  return given.valid() ? reshape(given, dims) : given;
}

static Expr scaled_by_channel(Expr y, Expr gamma, Expr beta) {
  if (gamma) y = y * of_channels(y, gamma, "gamma");
  if (beta) y = y + of_channels(y, beta, "beta");
  return y;
}

// Each group of channels has its own statistics, over its channels and all spatial axes.
static Outputs normalise_groups(const Inputs& in, const Dim& groups, double eps) {
  Expr x = in[0];
  auto channels = divided(x, x.dim(1), groups);
  if (!channels) return {};
  Dim space = element_count(std::span(x.dims()).subspan(2));
  Expr split[] = {reshape(x, {x.dim(0), groups, *channels * space})};
  Outputs norm = in.builder().ops(Op::kLayerNorm, split, {{"axis", int64_t{2}}, {"eps", eps}});
  Expr y = scaled_by_channel(reshape(norm[0], x.dims()), in[1], in[2]);
  std::vector<Dim> per_group{x.dim(0), groups};
  return {y, reshape(norm[1], per_group), reshape(norm[2], per_group)};
}

Outputs decompose_group_norm(const Inputs& in, const Attrs& attrs) {
  if (!has_channels(in[0])) return {};
  return normalise_groups(in, attrs.i64("groups"), attrs.f64("eps"));
}
Outputs decompose_instance_norm(const Inputs& in, const Attrs& attrs) {
  if (!has_channels(in[0])) return {};
  Outputs outputs = normalise_groups(in, in[0].dim(1), attrs.f64("eps"));
  outputs.resize(std::min<size_t>(outputs.size(), 1));
  return outputs;
}

Outputs decompose_layer_norm_2d(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  if (x.rank() != 4) return {x.builder().fail(wrong_rank("x", "4", x.rank()))};
  Expr c = x - mean(x, {1});
  return {scaled_by_channel(c * (1.0 / sqrt(mean(c * c, {1}) + attrs.f64("eps"))), in[1], in[2])};
}

Outputs decompose_batch_norm(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  if (!has_channels(x)) return {};
  Expr c = x - of_channels(x, in[3], "mean");
  Expr inv_std = 1.0 / sqrt(of_channels(x, in[4], "var") + attrs.f64("eps"));
  return {scaled_by_channel(c * inv_std, in[1], in[2])};
}

// ---- residuals ----

// x + res + bias, normalised before the sum is rounded.
static Outputs residual_norm(Op norm, const Inputs& in, const Attrs& attrs) {
  Expr total = in[0] + in[1];
  if (in[2]) total = total + in[2];
  if (!require_shape(total, "the sum", in[0].dims())) return {};
  return {total.builder().op(norm, {total, in[3], in[4]}, {{"eps", attrs.f64("eps")}}), total};
}

Outputs decompose_residual_layer_norm(const Inputs& in, const Attrs& attrs) {
  return residual_norm(Op::kLayerNorm, in, attrs);
}
Outputs decompose_residual_rms_norm(const Inputs& in, const Attrs& attrs) {
  return residual_norm(Op::kRmsNorm, in, attrs);
}

}  // namespace rlx
