// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that resample images and pick boxes.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "base/fraction.h"
#include "import/onnx/call.h"
#include "import/onnx/roi_align.h"

namespace rlx::onnx {

namespace {

// ---- Resize ----

// What a node asks of some axes: sizes, scales or both. With both, the scales give the coordinates.
struct Extent {
  Axes axes;
  std::optional<std::vector<Dim>> sizes;
  std::optional<std::vector<double>> scales;

  NamedAttrs attrs() const {
    NamedAttrs result{{"axes", axes}};
    if (sizes) result.emplace_back("sizes", *sizes);
    if (scales) result.emplace_back("scales", *scales);
    return result;
  }
};

// That of the axes whose place `takes`.
Extent part_of(const Extent& all, const std::function<bool(size_t)>& takes) {
  Extent part;
  if (all.sizes) part.sizes.emplace();
  if (all.scales) part.scales.emplace();
  for (size_t i = 0; i < all.axes.size(); i++) {
    if (!takes(i)) continue;
    part.axes.push_back(all.axes[i]);
    if (all.sizes) part.sizes->push_back((*all.sizes)[i]);
    if (all.scales) part.scales->push_back((*all.scales)[i]);
  }
  return part;
}

// ONNX Runtime multiplies a size and a scale in f32. 10 * 0.7f is 7 there, as the writer of 0.7 means it, though 0.7f
// is less than 0.7; and 90 * 1.3f is less than 117.
double size_in_f32(int64_t n, float scale) {
  return std::floor(static_cast<double>(static_cast<float>(n) * scale));
}

// The largest n, up to kMostChecked, so that floor(m * fraction) is the size in f32 for all m <= n.
constexpr int64_t kMostChecked = 1 << 18;
int64_t agrees_up_to(const Fraction& fraction, float scale) {
  if (fraction.denominator == 1) return kMostChecked;
  for (int64_t n = 1; n <= kMostChecked; n++)
    if (n * fraction.numerator / fraction.denominator != static_cast<int64_t>(size_in_f32(n, scale))) return n - 1;
  return kMostChecked;
}

// The floor of the f32 product n * scale, as an expression for every n up to kMostChecked. Rounding to f32 adds at most
// half a unit in the last place, so half a unit is added to the numerator before the division. The unit doubles
// whenever the product passes a power of 2: from `first` on, min(1, n / first) adds the missing half.
Dim size_in_f32_of(const Dim& n, Fraction scale) {
  while (scale.denominator < (1 << 25)) scale.numerator *= 2, scale.denominator *= 2;
  int64_t half_unit = scale.denominator >> 25;  // of a product below 1
  Dim sum = n * Dim(scale.numerator) + Dim(half_unit);
  for (int64_t power = 1;; power *= 2) {
    int64_t first = (power * scale.denominator + scale.numerator - 1) / scale.numerator;
    if (first > kMostChecked) return floor_div(sum, Dim(scale.denominator));
    sum += Dim(half_unit * power) * min(Dim(1), floor_div(n, Dim(first)));
  }
}

// The size of an axis of n elements by a scale; nullopt if the op is to say why there is none. For an open n, it is n
// times a fraction: of the one that the scale was rounded from and the one that it is, that which agrees with ONNX
// Runtime for more n. A guard keeps other n out: for them there are special models. Where these n are few, as for 1.3f,
// a long expression is better.
std::optional<Dim> size_by(Expr x, const Dim& n, float scale) {
  static constexpr int64_t kExact = 1 << 24;  // the integers up to here are numbers of f32
  static constexpr double kLargest = 0x1p40;
  static constexpr int64_t kFew = 4096;
  static constexpr float kLargestScale = 64;  // kMostChecked times it is exact in f32, too
  if (n.is_literal() && n.literal() <= kExact) {
    double size = size_in_f32(n.literal(), scale);
    return size <= kLargest ? std::optional<Dim>(static_cast<int64_t>(size)) : std::nullopt;
  }
  Fraction best;
  int64_t reach = -1;
  for (auto fraction : {simple_fraction_of(scale), exact_fraction_of(scale)}) {
    int64_t agrees = fraction ? agrees_up_to(*fraction, scale) : -1;
    if (agrees > reach) best = *fraction, reach = agrees;
  }
  if (reach < 0) return std::nullopt;
  auto exact = exact_fraction_of(scale);
  if (exact && scale <= kLargestScale && reach < kFew && n.symbol_name()) return size_in_f32_of(n, *exact);
  if (reach < kMostChecked && !n.is_literal() && !require(x, Guard::kLessEqual, n, reach)) return std::nullopt;
  return floor_div(n * Dim(best.numerator), Dim(best.denominator));
}

// The scales of a file are f32s. Coordinates take the simple fractions that they were rounded from. Sizes are said only
// where the op would take others. nullopt: it has failed.
std::optional<Extent> extent_by_scales(Call& call, const Axes& axes, const std::vector<double>& scales) {
  Expr x = call.in(0);
  if (scales.size() != axes.size()) return call.fail(Code::kData, "'scales' does not suit the axes"), std::nullopt;
  Extent extent{axes, std::nullopt, std::vector<double>()};
  std::vector<Dim> sizes;
  bool are_others = false;
  for (size_t i = 0; i < axes.size(); i++) {
    auto scale = static_cast<float>(scales[i]);
    if (!(scale > 0) || std::isinf(scale))
      return call.fail(Code::kData, format("a scale of {}", scales[i])), std::nullopt;
    auto simple = simple_fraction_of(scale), fraction = simple ? simple : exact_fraction_of(scale);
    extent.scales->push_back(simple ? simple->value() : scale);
    const Dim& n = x.dim(axes[i]);
    auto size = size_by(x, n, scale);
    if (size) sizes.push_back(*size);
    are_others |= size && !(fraction && *size == floor_div(n * Dim(fraction->numerator), Dim(fraction->denominator)));
  }
  if (are_others && sizes.size() == axes.size()) extent.sizes = sizes;
  return extent;
}

bool is_given(Call& call, size_t i) {
  return call.has(i) && !(call.type(i).rank() == 1 && call.type(i).dims[0].is(0));
}

// One scale for all axes, the smallest or the largest of those that give the sizes, and the sizes that it gives.
std::optional<Extent> extent_by_one_scale(Call& call, const Axes& axes, const std::vector<Dim>& sizes, bool smallest) {
  const std::vector<Dim>& dims = call.type(0).dims;
  double from = 1, to = 0;  // the scale is to / from
  for (size_t i = 0; i < sizes.size(); i++) {
    const Dim& n = dims[static_cast<size_t>(axes[i])];
    if (!n.is_literal() || !sizes[i].is_literal() || n.is(0)) {
      call.fail_of_sizes("'keep_aspect_ratio_policy' of sizes that are not numbers");
      return std::nullopt;
    }
    auto size = static_cast<double>(sizes[i].literal()), length = static_cast<double>(n.literal());
    if (i == 0 || (smallest ? size / length < to / from : size / length > to / from)) from = length, to = size;
  }
  Extent extent{axes, std::vector<Dim>(), std::nullopt};
  for (int64_t axis : axes) {
    auto n = static_cast<double>(dims[static_cast<size_t>(axis)].literal());
    extent.sizes->emplace_back(static_cast<int64_t>(std::clamp(std::floor(to * n / from + 0.5), -1.0, 0x1p62)));
  }
  if (to > 0) extent.scales = std::vector<double>(axes.size(), to / from);  // else nothing is sampled
  return extent;
}

// From the inputs of this opset; nullopt: it has failed.
std::optional<Extent> extent_of(Call& call, const Axes& axes) {
  std::string_view policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    call.fail(Code::kData, "'keep_aspect_ratio_policy' is " + std::string(policy));
  if (call.opset() < 11 || !is_given(call, 3))
    return extent_by_scales(call, axes, call.reals(call.opset() < 11 ? 1 : 2, "scales"));
  std::vector<Dim> sizes = policy == "stretch" ? call.run_dims(3, "sizes") : call.dims(3, "sizes");
  if (sizes.size() != axes.size()) return call.fail(Code::kData, "'sizes' does not suit the axes"), std::nullopt;
  if (policy != "stretch") return extent_by_one_scale(call, axes, sizes, policy == "not_larger");
  return Extent{axes, sizes, std::nullopt};
}

// Where the o elements of an axis of a crop lie in x, and which of them lie outside. They are spread evenly from
// `start` to `end`, which are fractions of the axis of x; a single one lies in the middle.
struct CropAxis {
  Expr place, outside;
};
CropAxis crop_axis(Builder& b, const Dim& n, const Dim& o, Expr start, Expr end) {
  Expr last = b.size(n - 1, DType::kF32), steps = b.size(o - 1, DType::kF32);
  Expr first = where(less(steps, 1), (start + end) * 0.5, start) * last;
  Expr step = where(less(steps, 1), steps * 0.0, (end - start) * last / maximum(steps, 1));
  Expr place = first + iota(b, {o}, 0, DType::kF32) * step;
  return {place, logical_or(less(place, 0), less(last, place))};
}

// The value outside of x. For a crop of integers it is rounded towards 0.
double extrapolation_of(Call& call) {
  double value = call.f64("extrapolation_value", 0);
  return is_float(call.type(0).dtype) ? value : std::trunc(value);
}

// A linear crop whose borders are data: along each axis a weighted sum of two neighbours.
Expr crop_in_run(Call& call, Expr x, const Axes& axes, std::span<const Dim> sizes) {
  Builder& b = call.builder();
  auto count = static_cast<int64_t>(axes.size());
  Expr borders = cast(call.in(1), DType::kF32);
  if (!require_shape(borders, "roi", std::array<Dim, 1>{Dim(2 * count)})) return x;
  DType dtype = x.dtype();
  std::vector<Expr> outside;
  for (int64_t i = 0; i < count; i++) {
    int64_t axis = axes[static_cast<size_t>(i)];
    auto border = [&](int64_t at) { return reshape(slice(borders, 0, at, at + 1), {}); };
    CropAxis crop = crop_axis(b, x.dim(axis), sizes[static_cast<size_t>(i)], border(i), border(i + count));
    auto across = [&](Expr row) {  // aligned with this axis of x
      std::vector<Dim> dims(x.rank() - static_cast<size_t>(axis), 1);
      dims[0] = row.dim(0);
      return reshape(row, dims);
    };
    Expr below = floor(crop.place), weight = cast(across(crop.place - below), dtype);
    Expr n = b.size(x.dim(axis), DType::kF32);
    Expr low = gather(x, as_index(below, n), axis), high = gather(x, as_index(below + 1.0, n), axis);
    x = low + (high - low) * weight;
    if (!x.valid()) return x;
    outside.push_back(across(crop.outside));
  }
  for (Expr is_outside : outside) x = where(is_outside, extrapolation_of(call), x);
  return x;
}

// Before opset 11 the nearest element is the next one along an axis that shrinks, and the one before elsewhere.
Expr nearest_of_old(Call& call, Expr x, const Extent& extent) {
  for (const char* nearest : {"ceil", "floor"}) {
    Extent part = part_of(extent, [&](size_t i) { return ((*extent.scales)[i] < 1) == (nearest[0] == 'c'); });
    if (part.axes.empty()) continue;
    NamedAttrs attrs = part.attrs();
    attrs.emplace_back("coord", "asymmetric");
    attrs.emplace_back("nearest_mode", nearest);
    x = call.op("resize", {x}, attrs);
  }
  return x;
}

// Without the axes that keep their size. ONNX Runtime, which tf_half_pixel_for_nn is from, leaves these as they are,
// though the formula would move their elements by a half.
Extent without_kept_axes(std::span<const Dim> dims, const Extent& extent) {
  return part_of(extent, [&](size_t i) {
    bool stays =
        extent.scales ? (*extent.scales)[i] == 1 : (*extent.sizes)[i] == dims[static_cast<size_t>(extent.axes[i])];
    return !stays;
  });
}

void build_resize(Call& call) {
  Expr x = call.in(0);
  if (!x.valid()) return;
  auto extent = extent_of(call, call.axes(call.i64s("axes", trailing_axes(0, x.rank())), x.rank()));
  if (!extent) return;
  bool is_old = call.opset() < 11;
  if (is_old && call.text("mode", "nearest") == "nearest") return call.out(0, nearest_of_old(call, x, *extent));
  std::string coord(is_old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel"));
  std::string nearest(is_old ? "floor" : call.text("nearest_mode", "round_prefer_floor"));
  if (coord == "tf_half_pixel_for_nn") extent = without_kept_axes(x.dims(), *extent);
  NamedAttrs attrs = extent->attrs();
  attrs.emplace_back("coord", coord);
  attrs.emplace_back("mode", std::string(call.text("mode", "nearest")));
  attrs.emplace_back("nearest_mode", nearest);
  attrs.emplace_back("cubic_a", call.f64("cubic_coeff_a", -0.75));
  attrs.emplace_back("exclude_outside", call.i64("exclude_outside", 0));
  attrs.emplace_back("antialias", call.i64("antialias", 0));
  attrs.emplace_back("extrapolation", extrapolation_of(call));
  bool is_crop = coord == "tf_crop_and_resize";
  if (is_crop && call.i64("antialias", 0) != 0) return call.fail(Code::kUnsupported, "'antialias' of a crop");
  bool is_open = is_crop && call.has(1) && !call.value(1)->tensor && !call.sizes(1);
  if (is_open && call.text("mode", "nearest") == "linear" && extent->sizes)
    return call.out(0, crop_in_run(call, x, extent->axes, *extent->sizes));
  if (is_crop) attrs.emplace_back("roi", call.reals(1, "roi"));
  call.out(0, call.op("resize", {x}, attrs));
}

// Scales were an attribute before opset 9, and two before opset 7.
void build_upsample(Call& call) {
  std::string mode(call.text("mode", "nearest"));
  std::vector<double> scales;
  if (call.opset() < 7)
    scales = {1, 1, call.f64("height_scale", 1), call.f64("width_scale", 1)};
  else
    scales = call.opset() < 9 ? call.f64s("scales") : call.reals(1, "scales");
  if (mode == "bilinear") mode = "linear";
  Expr x = call.in(0);
  if (!x.valid()) return;
  auto extent = extent_by_scales(call, trailing_axes(0, x.rank()), scales);
  if (!extent) return;
  NamedAttrs attrs = extent->attrs();
  attrs.emplace_back("coord", "asymmetric");
  attrs.emplace_back("mode", mode);
  attrs.emplace_back("nearest_mode", "floor");
  call.out(0, call.op("resize", {x}, attrs));
}

// ---- grids ----

void build_grid_sample(Call& call) {
  std::string mode(call.text("mode", "linear")), padding(call.text("padding_mode", "zeros"));
  if (mode == "bilinear" || mode == "bicubic") mode.erase(0, 2);
  int64_t align = call.i64("align_corners", 0);
  call.out(0, call.op("grid_sample", {call.in(0), call.in(1)},
                      {{"mode", mode}, {"padding", padding}, {"align_corners", align}}));
}

void build_affine_grid(Call& call) {
  int64_t align = call.i64("align_corners", 0);
  call.out(0, call.op("affine_grid", {call.in(0)}, {{"size", call.dims(1, "size")}, {"align_corners", align}}));
}

// ---- boxes ----

void build_roi_align(Call& call) {
  static constexpr int64_t kMaxSamples = 1 << 20;  // or elements of the result, along an axis
  bool is_old = call.opset() < 16;
  std::string_view coord = is_old ? "output_half_pixel" : call.text("coordinate_transformation_mode", "half_pixel");
  if (coord != "half_pixel" && coord != "output_half_pixel")
    call.fail(Code::kData, "'coordinate_transformation_mode' is " + std::string(coord));
  std::string_view mode = call.text("mode", "avg");
  if (mode != "avg" && mode != "max") return call.fail(Code::kData, "'mode' is " + std::string(mode));
  RoiAlign node{call.i64("output_height", 1), call.i64("output_width", 1), call.i64("sampling_ratio", 0),
                call.f64("spatial_scale", 1), coord == "half_pixel",       mode == "max"};
  if (std::min(node.height, node.width) < 1 || std::max({node.height, node.width, node.sampling}) > kMaxSamples)
    return call.fail(Code::kData, "'output_height', 'output_width' or 'sampling_ratio' is out of range");
  if (node.is_max || node.sampling <= 0) return call.out(0, roi_align_by_samples(call, node));
  call.out(0, call.op("roi_align", {call.in(0), call.in(1), call.in(2)},
                      {{"out_h", node.height},
                       {"out_w", node.width},
                       {"sampling", node.sampling},
                       {"scale", node.scale},
                       {"half_pixel", int64_t{node.half_pixel}},
                       {"mode", "avg"}}));
}

// The samples of one axis of each box, from `first` to `last` as fractions of the axis. `weights`, [boxes, 1, count,
// n]: how much each of the n elements counts in each sample. `outside`, [boxes, 1, count]: which samples lie outside.
struct Samples {
  Expr weights, outside;
};
Samples samples_of(Expr first, Expr last, const Dim& n, int64_t count, bool is_nearest) {
  Builder& b = first.builder();
  auto shares = Tensor::create(DType::kF32, std::span<const int64_t>(&count, 1));
  if (!shares.ok()) return {b.fail(shares.status()), first};
  for (int64_t i = 0; i < count; i++)  // a single one is in the middle
    shares->as<float>()[i] = count > 1 ? static_cast<float>(i) / static_cast<float>(count - 1) : 0.5F;
  Expr end = b.size(n - 1, DType::kF32), share = b.constant(*shares);
  Expr at = unsqueeze(first * end + (last - first) * end * share, 1);  // [boxes, 1, count]
  Expr outside = logical_or(less(at, 0), less(end, at));
  if (is_nearest) at = floor(at + 0.5);
  Expr apart = abs(unsqueeze(at, 3) - iota(b, {n}, 0, DType::kF32));
  return {maximum(1.0 - apart, 0), outside};
}

// Boxes y1, x1, y2, x2 of images, in as many samples each. Two products take them, one along each axis.
void build_crop_and_resize(Call& call) {
  std::string_view mode = call.text("mode", "bilinear");
  double extrapolation = call.f64("extrapolation_value", 0);
  std::vector<int64_t> size = call.numbers(3, "crop_size");
  Expr x = call.in(0), boxes = call.in(1), image = call.in(2);
  if (!x.valid() || !boxes.valid() || !image.valid()) return;
  if (mode != "bilinear" && mode != "nearest") return call.fail(Code::kData, "'mode' is " + std::string(mode));
  if (x.rank() != 4 || boxes.rank() != 2 || image.rank() != 1)
    return call.fail(Code::kShape, "its inputs must have rank 4, 2 and 1");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1) return call.fail(Code::kData, "'crop_size' must hold two sizes");
  auto border = [&](int64_t i) { return cast(slice(boxes, 1, i, i + 1), DType::kF32); };
  Samples down = samples_of(border(0), border(2), x.dim(2), size[0], mode == "nearest");
  Samples across = samples_of(border(1), border(3), x.dim(3), size[1], mode == "nearest");
  Expr y = matmul(cast(down.weights, x.dtype()), gather(x, image, 0));
  y = matmul(y, cast(across.weights, x.dtype()), {.b = true});
  Expr outside = logical_or(unsqueeze(down.outside, 3), unsqueeze(across.outside, 2));
  call.out(0, where(outside, extrapolation, y));
}

// [boxes, pieces, n]: which of n elements are in which piece of the box's axis. Borders are rounded to elements, and a
// box has at least one.
Expr pieces_of(Call& call, Expr first, Expr last, const Dim& n, int64_t count) {
  Builder& b = call.builder();
  Expr length = maximum(last - first + 1.0, 1), i = iota(b, {Dim(count)}, 0, DType::kI64);
  Expr pieces = b.scalar(DType::kI64, static_cast<double>(count));
  Expr begin = call.op("floor_div", {i * length, pieces}) + first;
  Expr end = first - call.op("floor_div", {(i + 1.0) * -length, pieces});
  Expr place = iota(b, {n}, 0, DType::kI64);
  return logical_and(less_equal(unsqueeze(begin, 2), place), less(place, unsqueeze(end, 2)));
}

// The largest element of each piece of each box, 0 where it has none: along one axis, then along the other. Each row
// and column of pieces has nodes of its own.
void build_max_roi_pool(Call& call) {
  static constexpr int64_t kMaxPieces = 1024;  // of an axis: a small file must not become a graph without end
  std::vector<int64_t> size = call.i64s("pooled_shape");
  double scale = call.f64("spatial_scale", 1);
  Expr x = call.in(0), rois = call.in(1);
  if (!x.valid() || !rois.valid()) return;
  if (x.rank() != 4 || rois.rank() != 2) return call.fail(Code::kShape, "its inputs must have rank 4 and 2");
  if (size.size() != 2 || size[0] < 1 || size[1] < 1)
    return call.fail(Code::kData, "'pooled_shape' must hold two sizes");
  if (std::max(size[0], size[1]) > kMaxPieces)
    return call.fail(Code::kUnsupported, format("'pooled_shape' holds more than {}", kMaxPieces));
  auto border = [&](int64_t i) {
    return cast(floor(abs(cast(slice(rois, 1, i, i + 1), DType::kF32)) * scale + 0.5), DType::kI64);
  };
  Expr image = reshape(cast(slice(rois, 1, 0, 1), DType::kI64), {rois.dim(0)});
  Expr columns = pieces_of(call, border(1), border(3), x.dim(3), size[1]);
  Expr rows = pieces_of(call, border(2), border(4), x.dim(2), size[0]);
  Expr y = gather(x, image, 0);
  double lowest = -std::numeric_limits<double>::infinity();
  std::vector<Expr> taken;
  for (int64_t i = 0; i < size[1]; i++) {  // [boxes, 1, 1, W]
    Expr seen = unsqueeze(slice(columns, 1, i, i + 1), 1);
    taken.push_back(reduce(where(seen, y, lowest), "max", {3}));
  }
  y = concat(taken, 3);
  taken.clear();
  for (int64_t i = 0; i < size[0]; i++) {  // [boxes, 1, H, 1]
    Expr seen = unsqueeze(unsqueeze(reshape(slice(rows, 1, i, i + 1), {rois.dim(0), x.dim(2)}), 1), 3);
    taken.push_back(reduce(where(seen, y, lowest), "max", {2}));
  }
  y = concat(taken, 2);
  call.out(0, where(equal(y, lowest), 0, y));
}

// A number that may be absent.
double number_or(Call& call, size_t i, const char* what, double fallback) {
  if (!call.has(i)) return fallback;
  std::vector<double> numbers = call.reals(i, what);
  if (numbers.size() == 1) return numbers[0];
  call.fail(Code::kData, std::string("'") + what + "' is not one number");
  return fallback;
}

void build_non_max_suppression(Call& call) {
  static constexpr int64_t kMost = int64_t{1} << 40;  // no more than there can be boxes
  Dim most = 0;
  if (call.has(2)) {
    std::vector<Dim> given = call.run_dims(2, "max_output_boxes_per_class");
    if (given.size() != 1) return call.fail(Code::kData, "'max_output_boxes_per_class' is not one number");
    most = given[0].is_literal() ? Dim(std::clamp<int64_t>(given[0].literal(), 0, kMost)) : given[0];
  }
  NamedAttrs attrs{
      {"max_out", most}, {"iou", number_or(call, 3, "iou_threshold", 0)}, {"center", call.i64("center_point_box", 0)}};
  Expr scores = call.in(1);
  if (call.has(4) && (call.value(4)->tensor || call.sizes(4))) {
    attrs.emplace_back("score", number_or(call, 4, "score_threshold", 0));
  } else if (call.has(4) && scores.valid()) {  // a threshold that only the run knows
    Expr least = reshape(cast(call.in(4), scores.dtype()), {});
    scores = where(less(least, scores), scores, -std::numeric_limits<double>::infinity());
    attrs.emplace_back("score", static_cast<double>(std::numeric_limits<float>::lowest()));
  }
  call.out(0, call.op("non_max_suppression", {call.in(0), scores}, attrs));
}

constexpr NodeKind kKinds[] = {
    {"Resize", build_resize},
    {"Upsample", build_upsample},
    {"GridSample", build_grid_sample},
    {"AffineGrid", build_affine_grid},
    {"RoiAlign", build_roi_align},
    {"NonMaxSuppression", build_non_max_suppression},
    {"MaxRoiPool", build_max_roi_pool},
    microsoft("CropAndResize", build_crop_and_resize),
    microsoft("GridSample", build_grid_sample),
};

}  // namespace

std::span<const NodeKind> image_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
