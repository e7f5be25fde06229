// SPDX-License-Identifier: Apache-2.0
// Resampling along axes, one after another: each output element is a weighted sum of input elements around a source
// coordinate. Coordinates, indices and weights follow from sizes alone; they are computed in f64.
#include <algorithm>
#include <cmath>

#include "base/fraction.h"
#include "ops/expr.h"

namespace rlx {

// One resampled axis: from `in` elements to `out`. n, o and scale are these numbers as f64 scalars.
struct Resampled {
  int64_t axis = 0;
  Dim in, out;
  Expr n, o, scale;
  double factor = 0;          // the given scale; 0: none is given, and the sizes tell it
  double start = 0, end = 1;  // of the region of interest

  bool keeps_size() const { return in == out && (factor == 0 || factor == 1); }
};

static std::nullopt_t no_axes(Expr x, Code code, std::string message) {
  refuse(x, code, std::move(message));
  return std::nullopt;
}

// floor(n * scale). A simple fraction stands for the scale that was rounded from it.
static std::optional<Dim> scaled_size(Expr x, const Dim& n, double scale) {
  auto fraction = simple_fraction_of(scale);
  if (!fraction) fraction = exact_fraction_of(scale);
  if (fraction) return floor_div(n * Dim(fraction->numerator), Dim(fraction->denominator));
  if (!n.is_literal())
    return no_axes(x, Code::kUnsupported, format("the scale {} of an open size is no fraction up to 2^32", scale));
  double size = std::floor(static_cast<double>(n.literal()) * scale);
  if (size > 0x1p40) return no_axes(x, Code::kRange, "a scale makes a size too large");
  return Dim(static_cast<int64_t>(size));
}

// Nothing can be sampled of an empty axis, so a result of given size has to be empty, too.
static bool has_samples(Expr x, const Resampled& axis) {
  if (axis.keeps_size()) return true;
  Dim at_nothing = substitute(axis.out, [&](std::string_view symbol) {
    return axis.in.symbol_name() && *axis.in.symbol_name() == symbol ? std::optional<Dim>(0) : std::nullopt;
  });
  if (at_nothing.is(0)) return true;
  bool is_filled = x.builder().graph().range(axis.out).lo >= 1;
  return require(x, Guard::kLessEqual, is_filled ? Dim(1) : min(Dim(1), axis.out), axis.in);
}

// Whether the lists have one entry per axis, and those that 'coord' needs are there.
static bool suits_axes(Expr x, const Attrs& attrs) {
  size_t count = attrs.i64s("axes").size();
  bool has_sizes = attrs.has("sizes"), has_scales = attrs.has("scales"), has_roi = attrs.has("roi");
  auto refused = [&](std::string message) { return refuse(x, Code::kOption, std::move(message)), false; };
  if (!has_sizes && !has_scales) return refused("'sizes' or 'scales' must be given");
  if ((has_sizes && attrs.dims("sizes").size() != count) || (has_scales && attrs.f64s("scales").size() != count) ||
      (has_roi && attrs.f64s("roi").size() != 2 * count))
    return refused(format("'axes' names {}; 'sizes', 'scales', 'roi' do not suit", plural(count, "axis")));
  if (!has_roi && attrs.is("coord", "tf_crop_and_resize")) return refused("'coord' tf_crop_and_resize needs 'roi'");
  if (has_scales && !std::ranges::all_of(attrs.f64s("scales"), [](double s) { return s > 0 && !std::isinf(s); }))
    return refused("'scales' must be positive");
  return true;
}

// Antialiasing stretches the kernel by 1 / scale.
static bool is_scale_large_enough(Expr x, const Resampled& axis, const Attrs& attrs) {
  static constexpr double kSmallestScale = 0x1p-29;
  if (axis.factor == 0 || axis.factor >= kSmallestScale || axis.out.is(0) || !attrs.flag("antialias")) return true;
  return refuse(x, Code::kRange, format("a scale of {} is too small for 'antialias'", axis.factor)), false;
}

// With sizes and scales, the sizes are those of the result, and the scales give the coordinates.
static std::optional<std::vector<Resampled>> resampled_axes(Expr x, const Attrs& attrs) {
  if (!suits_axes(x, attrs)) return std::nullopt;
  const Axes& axes = attrs.i64s("axes");
  bool has_sizes = attrs.has("sizes"), has_roi = attrs.has("roi");
  Builder& b = x.builder();
  std::vector<Resampled> result;
  for (size_t i = 0; i < axes.size(); i++) {
    Resampled axis{.axis = axes[i], .in = x.dim(axes[i])};
    if (attrs.has("scales")) axis.factor = attrs.f64s("scales")[i];
    auto out = has_sizes ? attrs.dims("sizes")[i] : scaled_size(x, axis.in, axis.factor);
    if (!out) return std::nullopt;
    axis.out = *out;
    if ((has_sizes && !has_samples(x, axis)) || !is_scale_large_enough(x, axis, attrs)) return std::nullopt;
    if (has_roi) axis.start = attrs.f64s("roi")[i], axis.end = attrs.f64s("roi")[i + axes.size()];
    axis.n = b.size(axis.in, DType::kF64), axis.o = b.size(axis.out, DType::kF64);
    axis.scale = axis.factor != 0 ? b.scalar(DType::kF64, axis.factor) : axis.o / axis.n;
    result.push_back(axis);
  }
  return result;
}

// ---- coordinates ----

// The coordinate in x of each output position.
static Expr source_coordinates(Builder& b, const Resampled& axis, const std::string& coord) {
  Expr j = iota(b, {axis.out}, 0, DType::kF64), n = axis.n, o = axis.o;
  auto unless_single = [&](Expr many, Expr single) { return where(greater(o, 1), many, single); };
  Expr half = (j + 0.5) / axis.scale - 0.5, zero = b.scalar(DType::kF64, 0);
  if (coord == "half_pixel") return half;
  if (coord == "half_pixel_symmetric") return n / 2.0 * (1.0 - o / (axis.scale * n)) + half;
  if (coord == "pytorch_half_pixel") return unless_single(half, zero);
  if (coord == "align_corners") return unless_single(j * (n - 1.0) / (o - 1.0), zero);
  if (coord == "asymmetric") return j / axis.scale;
  if (coord == "tf_half_pixel_for_nn") return (j + 0.5) / axis.scale;
  Expr first = axis.start * (n - 1.0);  // tf_crop_and_resize
  return unless_single(first + j * ((axis.end - axis.start) * (n - 1.0)) / (o - 1.0),
                       0.5 * (axis.start + axis.end) * (n - 1.0));
}

// The same coordinates as numerator / (2 * half), in integers: an exact one, or a tie, stays what it is.
struct Coordinate {
  Expr numerator, half;
};
static std::optional<Coordinate> exact_coordinates(Builder& b, const Resampled& axis, const std::string& coord) {
  static constexpr int64_t kLargest = int64_t{1} << 20;  // so that no product overflows
  Expr j = iota(b, {axis.out}, 0, DType::kI64), twice = j + j;
  Expr n = b.size(axis.in, DType::kI64), o = b.size(axis.out, DType::kI64);
  Expr up = o, down = n;  // the scale is up / down
  if (axis.factor != 0) {
    auto fraction = simple_fraction_of(axis.factor);
    if (!fraction || fraction->numerator > kLargest) return std::nullopt;
    up = b.scalar(DType::kI64, static_cast<double>(fraction->numerator)),
    down = b.scalar(DType::kI64, static_cast<double>(fraction->denominator));
  }
  Expr half_pixel = (twice + 1) * down - up;
  auto unless_single = [&](Expr numerator) { return where(greater(o, 1), numerator, 0); };
  if (coord == "half_pixel") return Coordinate{half_pixel, up};
  if (coord == "half_pixel_symmetric") return Coordinate{n * up - o * down + half_pixel, up};
  if (coord == "pytorch_half_pixel") return Coordinate{unless_single(half_pixel), up};
  if (coord == "align_corners") return Coordinate{twice * (n - 1), maximum(o - 1, 1)};
  if (coord == "asymmetric") return Coordinate{twice * down, up};
  if (coord == "tf_half_pixel_for_nn") return Coordinate{(twice + 1) * down, up};
  return std::nullopt;
}

static Expr ceiling(Expr x) {
  return unary(Op::kCeil, x);
}

// ---- one axis ----

static Expr nearest_place(Builder& b, const Coordinate& c, const Dim& n, const std::string& mode) {
  Expr two_halves = c.half + c.half;
  Expr shift = mode == "round_prefer_floor"  ? c.half - 1
               : mode == "round_prefer_ceil" ? c.half
               : mode == "floor"             ? c.half - c.half
                                             : two_halves - 1;
  Expr place = maximum(c.numerator + shift, 0) / two_halves;
  return minimum(place, b.size(n, DType::kI64) - 1);
}

// Indices of the nearest elements.
static Expr nearest(Builder& b, const Resampled& axis, Expr c, const Attrs& attrs) {
  const std::string& mode = attrs.str("nearest_mode");
  if (auto exact = exact_coordinates(b, axis, attrs.str("coord"))) return nearest_place(b, *exact, axis.in, mode);
  Expr position = mode == "round_prefer_floor"  ? ceiling(c - 0.5)
                  : mode == "round_prefer_ceil" ? floor(c + 0.5)
                  : mode == "floor"             ? floor(c)
                                                : ceiling(c);
  return as_index(position, axis.n);
}

struct Picked {
  int64_t axis;
  Expr index;
};
// Neighbouring axes together, others one after another.
static Expr gather_axes(Expr x, std::span<const Picked> axes) {
  for (size_t i = 0; i < axes.size() && x.valid(); i++) {
    const Picked &one = axes[i], &next = axes[std::min(i + 1, axes.size() - 1)];
    bool are_neighbours = std::abs(one.axis - next.axis) == 1;
    if (!are_neighbours) {
      x = gather(x, one.index, one.axis);
      continue;
    }
    const Picked &rows = one.axis < next.axis ? one : next, &columns = one.axis < next.axis ? next : one;
    x = x.builder().op(Op::kGatherPlane, {x, rows.index, columns.index}, {{"axis", rows.axis}});
    i++;
  }
  return x;
}

// Copies along the last axis move single elements, so they are made while there are few of them.
Outputs decompose_gather_plane(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], rows = in[1], columns = in[2];
  int64_t axis = attrs.i64("axis");
  for (Expr index : {rows, columns})
    if (index.rank() != 1) return {x.builder().fail(wrong_rank("index", "1", index.rank()))};
  if (axis + 1 >= static_cast<int64_t>(x.rank())) return {x.builder().fail(wrong_rank("x", "more", x.rank()))};
  const Dim &from = x.dim(axis), &to = rows.dim(0);
  bool shrinks = from.is_literal() && to.is_literal() && to.literal() < from.literal();
  return {shrinks ? gather(gather(x, rows, axis), columns, axis + 1)
                  : gather(gather(x, columns, axis + 1), rows, axis)};
}

// The weight of an element at a distance t >= 0.
static Expr kernel(Expr t, const Attrs& attrs) {
  if (attrs.is("mode", "linear")) return maximum(1.0 - t, 0);
  double a = attrs.f64("cubic_a");
  Expr near = ((a + 2) * t - (a + 3)) * t * t + 1.0, far = ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
  return where(less_equal(t, scalar_like(t, 1)), near, where(less(t, 2), far, 0));
}

// The radius of the kernel; it is larger where antialiasing stretches the kernel.
static Dim reach_of(const Resampled& axis, const Attrs& attrs) {
  int64_t support = attrs.is("mode", "cubic") ? 2 : 1;
  if (!attrs.flag("antialias") || axis.out.is(0)) return support;  // however small the scale: nothing is sampled
  if (axis.factor != 0)
    return static_cast<int64_t>(std::ceil(static_cast<double>(support) / std::min(axis.factor, 1.0)));
  Dim out = max(axis.out, Dim(1));
  return max(Dim(support), floor_div(axis.in * Dim(support) + out - Dim(1), out));
}

static Expr interpolated(Expr x, const Resampled& axis, Expr c, const Attrs& attrs) {
  Builder& b = x.builder();
  Dim reach = reach_of(axis, attrs), taps = reach * Dim(2);
  Expr offset = iota(b, {taps}, 0, DType::kF64) - (b.size(reach, DType::kF64) - 1.0);
  Expr position = unsqueeze(floor(c), 1) + offset;
  Expr distance = abs(position - unsqueeze(c, 1));
  bool antialias = attrs.flag("antialias"), exclude = attrs.flag("exclude_outside");
  if (antialias) distance = distance * minimum(axis.scale, 1);
  Expr weight = kernel(distance, attrs);
  if (exclude) weight = where(logical_or(less(position, 0), less(axis.n - 1.0, position)), 0, weight);
  if (antialias || exclude) weight = weight / sum(weight, {1});
  return b.op(Op::kGatherSum, {x, as_index(position, axis.n), cast(weight, x.dtype())}, {{"axis", axis.axis}});
}

Outputs decompose_gather_sum(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], index = in[1], weight = in[2];
  int64_t axis = attrs.i64("axis");
  if (index.rank() != 2) return {x.builder().fail(wrong_rank("index", "2", index.rank()))};
  if (!require_shape(weight, "weight", index.dims())) return {};
  if (x.rank() == kMaxRank) {  // there is no room for an axis of the taps
    std::vector<Dim> dims = x.dims();
    std::span<const Dim> all = dims;
    auto at = static_cast<size_t>(axis);
    x = reshape(x, {element_count(all.first(at)), all[at], element_count(all.subspan(at + 1))});
    dims[at] = index.dim(0);
    return {reshape(in.builder().op(Op::kGatherSum, {x, index, weight}, {{"axis", int64_t{1}}}), dims)};
  }
  std::vector<Dim> along(x.rank() + 1 - static_cast<size_t>(axis), 1);
  along[0] = index.dim(0), along[1] = index.dim(1);
  return {reduce(gather(x, index, axis) * reshape(weight, along), "sum", {axis + 1}, KeepDims::kNo)};
}

// Replaces elements whose coordinate lies outside x, along any axis, by `value`.
static Expr extrapolated(Expr y, const std::vector<Resampled>& axes, const std::vector<Expr>& coordinates,
                         double value) {
  for (size_t i = 0; i < axes.size(); i++) {
    if (!y.valid()) return y;
    Expr c = coordinates[i];
    std::vector<Dim> along(y.rank() - static_cast<size_t>(axes[i].axis), 1);
    along[0] = axes[i].out;
    Expr outside = logical_or(less(c, 0), less(axes[i].n - 1.0, c));
    y = where(reshape(outside, along), value, y);
  }
  return y;
}

static bool grows(const Resampled& axis) {
  return axis.factor > 1 || (axis.in.is_literal() && axis.out.is_literal() && axis.in.literal() < axis.out.literal());
}

Outputs decompose_resize(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], y = x;
  auto axes = resampled_axes(x, attrs);
  if (!axes) return {};
  const std::string& coord = attrs.str("coord");
  bool is_nearest = attrs.is("mode", "nearest"), crops = coord == "tf_crop_and_resize";
  bool rounds = !is_nearest && is_integer(x.dtype());
  if (rounds) y = cast(y, DType::kF32);
  if (is_nearest && !crops && std::ranges::any_of(*axes, grows)) std::ranges::reverse(*axes);
  std::vector<Picked> picked;
  std::vector<Expr> coordinates;
  for (const Resampled& axis : *axes) {
    Expr c = coordinates.emplace_back(source_coordinates(in.builder(), axis, coord));
    if (axis.keeps_size() && !crops && coord != "tf_half_pixel_for_nn") continue;
    if (is_nearest)
      picked.push_back({axis.axis, nearest(in.builder(), axis, c, attrs)});
    else
      y = interpolated(y, axis, c, attrs);
    if (!y.valid()) return {};
  }
  y = gather_axes(y, picked);
  if (!y.valid()) return {};
  if (crops) y = extrapolated(y, *axes, coordinates, attrs.f64("extrapolation"));
  return {rounds ? cast(unary(Op::kRound, y), x.dtype()) : y};
}

}  // namespace rlx
