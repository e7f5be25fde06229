// SPDX-License-Identifier: Apache-2.0
// Gaussian splatting (Kerbl and others, 3D Gaussian Splatting for Real-Time Radiance Field Rendering, 2023), densely:
// every Gaussian at every pixel.
#include <array>
#include <cmath>

#include "ops/expr.h"

namespace rlx {

using Vector = std::array<Expr, 3>;
using Square = std::array<Vector, 3>;  // rows

static Expr column(Expr x, int64_t i) {
  return reshape(slice(x, 1, i, i + 1), {x.dim(0)});
}
static Vector columns(Expr x) {
  return {column(x, 0), column(x, 1), column(x, 2)};
}
static Expr stacked(std::initializer_list<Expr> parts) {
  std::vector<Expr> each;
  for (Expr part : parts) each.push_back(unsqueeze(part, 1));
  return concat(each, 1);
}
static Expr dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
static Vector times(const Square& m, const Vector& v) {
  return {dot(m[0], v), dot(m[1], v), dot(m[2], v)};
}
static Expr clamp(Expr x, Expr bound) {
  return minimum(maximum(x, -bound), bound);
}

// The rotation matrix of a quaternion (x, y, z, w), which need not have length 1.
static Square rotation(Expr quats) {
  Expr unit = quats / sqrt(sum(quats * quats, {1}));
  auto [x, y, z] = columns(unit);
  Expr w = column(unit, 3);
  return {{{1.0 - (y * y + z * z) * 2, (x * y - w * z) * 2, (x * z + w * y) * 2},
           {(x * y + w * z) * 2, 1.0 - (x * x + z * z) * 2, (y * z - w * x) * 2},
           {(x * z - w * y) * 2, (y * z + w * x) * 2, 1.0 - (x * x + y * y) * 2}}};
}

// Sigma v of Sigma = M M', M the rotation with columns scaled.
static Vector covariance_times(const Square& rotated, const Vector& scale, const Vector& v) {
  Vector inner;
  for (size_t k = 0; k < 3; k++)
    inner[k] = scale[k] * scale[k] * (rotated[0][k] * v[0] + rotated[1][k] * v[1] + rotated[2][k] * v[2]);
  return times(rotated, inner);
}

// Real spherical harmonics of bands 1 to 3 in the direction (x, y, z).
static std::vector<Expr> harmonics(const Vector& direction, int64_t count) {
  const auto& [x, y, z] = direction;
  Expr xx = x * x, yy = y * y, zz = z * z;
  std::vector<Expr> all{y * -0.4886025119029199, z * 0.4886025119029199, x * -0.4886025119029199};
  if (count >= 8)
    for (Expr each : {x * y * 1.0925484305920792, y * z * -1.0925484305920792, (zz * 2 - xx - yy) * 0.31539156525252005,
                      x * z * -1.0925484305920792, (xx - yy) * 0.5462742152960396})
      all.push_back(each);
  if (count >= 15)
    for (Expr each : {y * (xx * 3 - yy) * -0.5900435899266435, x * y * z * 2.890611442640554,
                      y * (zz * 4 - xx - yy) * -0.4570457994644658, z * (zz * 2 - xx * 3 - yy * 3) * 0.3731763325901154,
                      x * (zz * 4 - xx - yy) * -0.4570457994644658, z * (xx - yy) * 1.445305721320277,
                      x * (xx - yy * 3) * -0.5900435899266435})
      all.push_back(each);
  return all;
}

static bool have_shapes(const Inputs& in, Expr sh) {
  Dim count = in[0].rank() == 2 ? in[0].dim(0) : Dim(0);
  if (sh && !(sh.rank() == 3 && (sh.dim(1).is(3) || sh.dim(1).is(8) || sh.dim(1).is(15))))
    return in.builder().fail(Status(Code::kShape, "sh has 3, 8 or 15 colours of each Gaussian")), false;
  return require_shape(in[0], "means", {count, 3}) && require_shape(in[1], "log_scales", {count, 3}) &&
         require_shape(in[2], "quats", {count, 4}) && require_shape(in[3], "opacity", {count}) &&
         require_shape(in[4], "colors", {count, 3}) && require_shape(in[6], "view", {4, 4}) &&
         require_shape(in[7], "intrinsics", {4}) && (!sh || require_shape(in[5], "sh", {count, sh.dim(1), 3}));
}

// The colours of the Gaussians as seen from the camera.
static Expr seen_colors(const Inputs& in, const Square& view_rotation, const Vector& view_shift) {
  Expr colors = in[4], sh = in[5];
  if (!sh) return colors;
  Vector way = columns(in[0]);
  for (size_t i = 0; i < 3; i++)
    way[i] = way[i] + dot({view_rotation[0][i], view_rotation[1][i], view_rotation[2][i]}, view_shift);
  Expr length = sqrt(dot(way, way));
  for (Expr& part : way) part = part / length;
  std::vector<Expr> parts = harmonics(way, sh.dim(1).literal());
  for (size_t k = 0; k < parts.size(); k++) {
    auto at = static_cast<int64_t>(k);
    colors = colors + unsqueeze(parts[k], 1) * reshape(slice(sh, 1, at, at + 1), colors.dims());
  }
  return maximum(colors, 0);
}

Outputs decompose_gaussian_splat_prepare(const Inputs& in, const Attrs& attrs) {
  if (!have_shapes(in, in[5])) return {};
  auto entry = [](Expr x, int64_t i) { return reshape(slice(reshape(x, {-1}), 0, i, i + 1), {}); };
  Square view_rotation;  // from the world to the camera
  Vector view_shift;
  for (size_t i = 0; i < 3; i++) {
    auto row = static_cast<int64_t>(4 * i);
    view_rotation[i] = {entry(in[6], row), entry(in[6], row + 1), entry(in[6], row + 2)};
    view_shift[i] = entry(in[6], row + 3);
  }
  Expr fx = entry(in[7], 0), fy = entry(in[7], 1), cx = entry(in[7], 2), cy = entry(in[7], 3);
  Vector t = times(view_rotation, columns(in[0]));
  for (size_t i = 0; i < 3; i++) t[i] = t[i] + view_shift[i];
  Expr is_in_front = less(scalar_like(t[2], attrs.f64("near")), t[2]), z = where(is_in_front, t[2], 1);
  Expr ux = clamp(t[0] / z, 1.3 * static_cast<double>(attrs.i64("width")) / (fx * 2));
  Expr uy = clamp(t[1] / z, 1.3 * static_cast<double>(attrs.i64("height")) / (fy * 2));
  Vector along_x, along_y;  // rows of the Jacobian of the projection, times the rotation
  for (size_t j = 0; j < 3; j++) {
    along_x[j] = fx / z * view_rotation[0][j] - fx * ux / z * view_rotation[2][j];
    along_y[j] = fy / z * view_rotation[1][j] - fy * uy / z * view_rotation[2][j];
  }
  Square rotated = rotation(in[2]);
  Vector scale = columns(exp(in[1]));
  Vector sx = covariance_times(rotated, scale, along_x), sy = covariance_times(rotated, scale, along_y);
  double blur = attrs.f64("blur");
  Expr a = dot(along_x, sx) + blur, b = dot(along_x, sy), c = dot(along_y, sy) + blur;
  Expr det = a * c - b * b, middle = (a + c) * 0.5;
  Expr radius = sqrt(middle + sqrt(maximum(middle * middle - det, 0))) * attrs.f64("radius_scale");
  return {stacked({fx * t[0] / z + cx, fy * t[1] / z + cy}),
          stacked({c / det, -b / det, a / det}),
          t[2],
          seen_colors(in, view_rotation, view_shift),
          unary(Op::kSigmoid, in[3]),
          radius,
          logical_and(is_in_front, greater(det, 0))};
}

// Splats from near to far, those that are not valid last.
static std::vector<Expr> by_depth(const Inputs& in) {
  Outputs order = in.builder().ops(Op::kSort, {where(in[6], in[2], NAN)}, {{"axis", int64_t{0}}});
  if (order.size() < 2) return {};
  std::vector<Expr> sorted;
  for (Expr each : in.all()) sorted.push_back(gather(each, order[1], 0));
  return sorted;
}

Outputs decompose_gaussian_splat_rasterize(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  if (in[2].rank() != 1) return {b.fail(wrong_rank("depth", "1", in[2].rank()))};
  Dim count = in[2].dim(0);
  if (!require_shape(in[0], "mean2d", {count, 2}) || !require_shape(in[1], "conic", {count, 3}) ||
      !require_shape(in[3], "color", {count, 3}) || !require_shape(in[4], "alpha", {count}) ||
      !require_shape(in[5], "radius", {count}) || !require_shape(in[6], "valid", {count}))
    return {};
  std::vector<Expr> s = by_depth(in);
  if (s.empty()) return {};
  Expr alpha = s[4], radius = s[5], valid = s[6];
  int64_t width = attrs.i64("width"), height = attrs.i64("height");
  DType type = alpha.dtype();
  Expr dx = column(s[0], 0) - (cast(iota(b, {1, width, 1}, 1, DType::kI64), type) + 0.5);
  Expr dy = column(s[0], 1) - (cast(iota(b, {height, 1, 1}, 0, DType::kI64), type) + 0.5);
  Expr power = (column(s[1], 0) * dx * dx + column(s[1], 2) * dy * dy) * -0.5 - column(s[1], 1) * dx * dy;
  Expr opacity = minimum(alpha * exp(minimum(power, 0)), attrs.f64("alpha_max"));
  Expr active = logical_and(logical_and(valid, less_equal(dx * dx + dy * dy, radius * radius)),
                            logical_and(less_equal(power, scalar_like(power, 0)),
                                        less_equal(scalar_like(opacity, attrs.f64("alpha_cutoff")), opacity)));
  opacity = where(active, opacity, 0);
  Expr passed = cumulative(1.0 - opacity, "prod", 2), before = cumulative_before(1.0 - opacity, "prod", 2);
  Expr keep = logical_and(active, less_equal(scalar_like(passed, attrs.f64("transmittance_min")), passed));
  if (int64_t most = attrs.i64("max_splats"); most > 0)
    keep = logical_and(keep, less_equal(cumulative(cast(active, DType::kI64), "sum", 2), b.size(most, DType::kI64)));
  Expr color = where(unsqueeze(valid, 1), s[3], 0), ones = broadcast_to(scalar_like(color, 1), {count, 1});
  std::array parts{color, ones};
  return {matmul(where(keep, before * opacity, 0), concat(parts, 1))};
}

Outputs decompose_gaussian_splat_render(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  auto some = [&](std::initializer_list<const char*> names) {
    NamedAttrs chosen{{"width", attrs.i64("width")}, {"height", attrs.i64("height")}};
    for (const char* name : names) chosen.emplace_back(name, attrs.get(name));
    return chosen;
  };
  Outputs splats = b.ops(Op::kGaussianSplatPrepare, in.all(), some({"near", "blur", "radius_scale"}));
  return b.ops(Op::kGaussianSplatRasterize, splats,
               some({"alpha_cutoff", "alpha_max", "transmittance_min", "max_splats"}));
}

}  // namespace rlx
