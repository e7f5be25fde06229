// SPDX-License-Identifier: Apache-2.0
// Gradients of softmax and of the norms, from the results of the forward op.
#include "ops/expr.h"

namespace rlx {

Outputs decompose_softmax_grad(const Inputs& in, const Attrs& attrs) {
  Expr y = in[0], dy = in[1];
  if (!require_shape(dy, "dy", y.dims())) return {};
  return {y * (dy - sum(y * dy, {attrs.i64("axis")}))};
}

Outputs decompose_log_softmax_grad(const Inputs& in, const Attrs& attrs) {
  Expr y = in[0], dy = in[1];
  if (!require_shape(dy, "dy", y.dims())) return {};
  return {dy - exp(y) * sum(dy, {attrs.i64("axis")})};
}

// The sum over the axes before `axis`.
static Expr over_leading(Expr x, int64_t axis) {
  return reduce(x, "sum", trailing_axes(0, static_cast<size_t>(axis)), KeepDims::kNo);
}

// All inputs must have the dtype of x. Beside a half x statistics may be f32, but the wide rule has made x f32 here.
static bool agree(const Inputs& in) {
  for (Expr e : in.all())
    if (e && e.dtype() != in[0].dtype()) return refuse(e, Code::kDtype, "all inputs must have the dtype of x"), false;
  return true;
}

// Checks the shapes of dy, the statistics and gamma against x.
static bool suit(const Inputs& in, size_t dy, int64_t axis) {
  Expr x = in[0];
  std::vector<Dim> statistics = x.dims(), parameters(x.dims().begin() + axis, x.dims().end());
  std::fill(statistics.begin() + axis, statistics.end(), Dim(1));
  if (!agree(in) || !require_shape(in[dy], "dy", x.dims())) return false;
  if (in[1] && !require_shape(in[1], "gamma", parameters)) return false;
  for (size_t i = 2; i < dy; i++)
    if (!require_shape(in[i], "a statistic", statistics)) return false;
  return true;
}

Outputs decompose_layer_norm_grad(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], gamma = in[1], s = in[3], dy = in[4];
  int64_t axis = attrs.i64("axis");
  if (!suit(in, 4, axis)) return {};
  Axes axes = trailing_axes(axis, x.rank());
  Expr h = (x - in[2]) * s, g = gamma ? dy * gamma : dy;
  Expr dx = s * (g - mean(g, axes) - h * mean(g * h, axes));
  return {dx, over_leading(dy * h, axis), over_leading(dy, axis)};
}

Outputs decompose_rms_norm_grad(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], gamma = in[1], s = in[2], dy = in[3];
  int64_t axis = attrs.i64("axis");
  if (!suit(in, 3, axis)) return {};
  Axes axes = trailing_axes(axis, x.rank());
  Expr g = gamma ? dy * gamma : dy;
  Expr dx = s * g - x * (s * s * s) * mean(g * x, axes);
  return {dx, over_leading(dy * x * s, axis), over_leading(dy, axis)};
}

Outputs decompose_group_norm_grad(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], gamma = in[1], dy = in[4];
  if (x.rank() < 2)
    return refuse(x, Code::kShape, format("x needs a batch and a channel axis, it has rank {}", x.rank()));
  Dim groups = attrs.i64("groups");
  auto channels = divided(x, x.dim(1), groups);
  if (!channels || !agree(in) || !require_shape(dy, "dy", x.dims())) return {};
  std::array per_group{x.dim(0), groups};
  std::array per_channel{x.dim(1)};
  if (!require_shape(in[2], "mean", per_group) || !require_shape(in[3], "inv_std", per_group)) return {};
  if (gamma && !require_shape(gamma, "gamma", per_channel)) return {};
  std::vector<Dim> along(x.rank() - 1, 1);
  along[0] = x.dim(1);
  std::vector<Dim> split{x.dim(0), groups, *channels * element_count(std::span(x.dims()).subspan(2))};
  auto grouped = [&](Expr e) { return reshape(e, split); };
  Expr s = unsqueeze(in[3], -1), h = (grouped(x) - unsqueeze(in[2], -1)) * s;
  Expr g = grouped(gamma ? dy * reshape(gamma, along) : dy);
  Expr dx = s * (g - mean(g, {2}) - h * mean(g * h, {2}));
  Axes others{0};
  for (int64_t axis : trailing_axes(2, x.rank())) others.push_back(axis);
  return {reshape(dx, x.dims()), reduce(dy * reshape(h, x.dims()), "sum", others, KeepDims::kNo),
          reduce(dy, "sum", others, KeepDims::kNo)};
}

}  // namespace rlx
