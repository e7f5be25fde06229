// SPDX-License-Identifier: Apache-2.0
// Interpolates images at positions that are values. x has channels last, [batch..., space..., C], and every corner
// around a position is one gather. Positions are f64 in all cases, so that every dtype picks the same elements.
#include <numbers>

#include "ops/expr.h"
#include "ops/fill.h"

namespace rlx {

static constexpr DType kPosition = DType::kF64;

static Expr size_of(Expr x, int64_t axis) {
  return x.builder().size(x.dim(axis), kPosition);
}

// Moves axis 1 to the end, and back.
static Expr channels_last(Expr x) {
  Axes perm{0};
  for (int64_t axis : trailing_axes(2, x.rank())) perm.push_back(axis);
  perm.push_back(1);
  return transpose(x, perm);
}
static Expr channels_first(Expr y) {
  Axes perm{0, static_cast<int64_t>(y.rank()) - 1};
  for (int64_t axis = 1; axis + 1 < static_cast<int64_t>(y.rank()); axis++) perm.push_back(axis);
  return transpose(y, perm);
}

// Whether a position, which is a whole number, is in [0, n).
static Expr is_inside(Expr position, Expr n) {
  return logical_and(less_equal(scalar_like(position, 0), position), less_equal(position, n - 1.0));
}

// One element of an axis that contributes to a position: its place, a whole number, and its weight. An absent weight is
// 1; `inside` is absent if every place is valid.
struct Tap {
  Expr position, weight, inside;
};

// The weighted sum of x over all combinations of one tap per axis. Positions have shape [batch..., place...].
static Expr weighted_sum(Expr x, int64_t batch_dims, const std::vector<std::vector<Tap>>& axes,
                         const std::vector<Expr>& sizes) {
  Expr total;
  x = never_empty(x, static_cast<size_t>(batch_dims), axes.size());  // 0 is what an image without elements has
  std::vector<size_t> choice(axes.size(), 0);
  while (true) {
    std::vector<Expr> index;
    Expr weight, inside;
    for (size_t i = 0; i < axes.size(); i++) {
      const Tap& tap = axes[i][choice[i]];
      index.push_back(unsqueeze(as_index(tap.position, sizes[i]), -1));
      if (tap.weight) weight = weight ? weight * tap.weight : tap.weight;
      if (tap.inside) inside = inside ? logical_and(inside, tap.inside) : tap.inside;
    }
    Expr value = x.builder().op(Op::kGatherNd, {x, concat(index, -1)}, {{"batch_dims", batch_dims}});
    if (weight) value = value * unsqueeze(cast(weight, x.dtype()), -1);
    if (inside) value = where(unsqueeze(inside, -1), value, 0);
    total = total ? total + value : value;
    size_t i = axes.size();
    while (i-- > 0 && ++choice[i] == axes[i].size()) choice[i] = 0;
    if (i == static_cast<size_t>(-1)) return total;
  }
}

// The two elements around a coordinate. Those beyond the ends are 0 or, with `kEnd`, the nearest element.
enum class Beyond { kZero, kEnd };
static std::vector<Tap> linear_taps(Expr c, Expr n, Beyond beyond) {
  Expr low = floor(c), high = low + 1.0, part = c - low;
  auto inside = [&](Expr position) { return beyond == Beyond::kZero ? is_inside(position, n) : Expr(); };
  return {{low, 1.0 - part, inside(low)}, {high, part, inside(high)}};
}

// ---- grid_sample ----

struct Sampling {
  std::string mode, padding;
  bool align;

  // Positions beyond the ends, mirrored there as often as needed.
  Expr reflected(Expr c, Expr n) const {
    Expr low = scalar_like(c, align ? 0 : -0.5), span = align ? n - 1.0 : n;
    Expr is_point = equal(span, 0), length = where(is_point, 1, span), far = abs(c - low);
    Expr flips = floor(far / length), rest = far - flips * length;
    Expr is_even = equal(binary(Op::kRem, flips, scalar_like(c, 2)), 0);
    return where(is_point, 0, where(is_even, rest + low, span + low - rest));
  }
  Expr padded(Expr c, Expr n) const {
    if (padding == "zeros") return c;
    return maximum(minimum(padding == "reflection" ? reflected(c, n) : c, n - 1.0), 0);
  }
  Expr coordinate(Expr g, Expr n) const { return align ? (g + 1.0) / 2.0 * (n - 1.0) : ((g + 1.0) * n - 1.0) / 2.0; }
  std::vector<Tap> taps(Expr g, Expr n) const {
    Expr c = coordinate(g, n);
    bool zeros = padding == "zeros";
    if (mode == "cubic") return cubic_taps(c, n);
    c = padded(c, n);
    if (mode == "linear") return linear_taps(c, n, zeros ? Beyond::kZero : Beyond::kEnd);
    Expr position = unary(Op::kRound, c);
    return {{position, Expr(), zeros ? is_inside(position, n) : Expr()}};
  }
  std::vector<Tap> cubic_taps(Expr c, Expr n) const {
    static constexpr double kA = -0.75;
    std::vector<Tap> taps;
    Expr low = floor(c), part = c - low;
    for (int k = -1; k <= 2; k++) {
      // Keys' polynomials in factored form: t is the distance of the nearer of the two taps on a side, s is 1 - t.
      Expr t = k <= 0 ? part : 1.0 - part, s = k <= 0 ? 1.0 - part : part;
      Expr weight = k == 0 || k == 1 ? s * (1.0 + t - (kA + 2) * t * t) : kA * t * s * s;
      Expr position = padded(low + static_cast<double>(k), n);
      taps.push_back({position, weight, padding == "zeros" ? is_inside(position, n) : Expr()});
    }
    return taps;
  }
};

Outputs decompose_grid_sample(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  DType type = is_float(x.dtype()) ? x.dtype() : DType::kF32;
  Expr grid = cast(in[1], kPosition);
  if (x.rank() < 3 || x.rank() > 5 || grid.rank() != x.rank())
    return refuse(x, Code::kShape, format("x and grid need rank 3, 4 or 5, not {} and {}", x.rank(), grid.rank()));
  auto axes = static_cast<int64_t>(x.rank()) - 2;
  if (!require(x, Guard::kEqual, grid.dim(-1), axes)) return {};
  Sampling sampling{attrs.str("mode"), attrs.str("padding"), attrs.flag("align_corners")};
  std::vector<std::vector<Tap>> taps;
  std::vector<Expr> sizes;
  std::vector<Dim> place(grid.dims().begin(), grid.dims().end() - 1);
  for (int64_t i = 0; i < axes; i++) {  // the innermost axis comes first in the grid
    Expr g = reshape(slice(grid, -1, axes - 1 - i, axes - i), place);
    sizes.push_back(size_of(x, 2 + i));
    taps.push_back(sampling.taps(g, sizes.back()));
    if (!b.status().ok()) return {};
  }
  Expr y = weighted_sum(channels_last(cast(x, type)), 1, taps, sizes);
  if (!y.valid()) return {};
  y = channels_first(y);
  if (type == x.dtype()) return {y};
  return {cast(attrs.is("mode", "nearest") ? y : unary(Op::kRound, y), x.dtype())};
}

// ---- affine_grid ----

Outputs decompose_affine_grid(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr theta = in[0];
  const std::vector<Dim>& size = attrs.dims("size");
  if (size.size() < 3 || size.size() > 5)
    return refuse(theta, Code::kOption, "'size' needs 3 to 5 entries: N, C, space");
  size_t axes = size.size() - 2;
  auto width = static_cast<int64_t>(axes);
  DType type = theta.dtype();
  if (!require_shape(theta, "theta", {size[0], width, width + 1})) return {};
  std::vector<Dim> space(size.begin() + 2, size.end()), column = space, result{size[0]};
  column.emplace_back(1);
  std::vector<Expr> columns;
  for (size_t i = axes; i-- > 0;) {
    std::vector<Dim> along(axes + 1, 1);
    along[i] = space[i];
    Expr at = cast(iota(b, along, static_cast<int64_t>(i), DType::kI64), type), n = b.size(space[i], type);
    Expr base =
        attrs.flag("align_corners") ? where(equal(n, 1), 0, 2.0 * at / (n - 1.0) - 1.0) : (2.0 * at + 1.0) / n - 1.0;
    columns.push_back(broadcast_to(base, column));
  }
  columns.push_back(broadcast_to(b.scalar(type, 1), column));
  Expr base = reshape(concat(columns, -1), {element_count(space), width + 1});
  result.insert(result.end(), space.begin(), space.end());
  result.emplace_back(width);
  return {reshape(matmul(base, theta, {.b = true}), result)};
}

// ---- roi_align ----

// The coordinates of the samples in the bins of each box along one axis: [R, bins * sampling].
static Expr bin_samples(Expr start, Expr end, int64_t bins, int64_t sampling, bool half_pixel) {
  Builder& b = start.builder();
  Expr extent = end - start;
  if (!half_pixel) extent = maximum(extent, 1);
  Expr sample = iota(b, {1, bins * sampling}, 1, start.dtype());
  return start + (sample + 0.5) * (extent / static_cast<double>(bins * sampling));
}

// Samples up to one pixel outside read the edge; beyond that they are 0.
static std::vector<Tap> edge_taps(Expr c, Expr n, const std::vector<Dim>& place, const std::vector<Dim>& along) {
  Expr inside = logical_and(less_equal(scalar_like(c, -1), c), less_equal(c, n));
  std::vector<Tap> taps = linear_taps(maximum(minimum(c, n - 1.0), 0), n, Beyond::kEnd);
  for (Tap& tap : taps) {
    tap.position = broadcast_to(reshape(tap.position, along), place);
    tap.weight = broadcast_to(reshape(tap.weight, along), place);
    tap.inside = broadcast_to(reshape(inside, along), place);
  }
  return taps;
}

Outputs decompose_roi_align(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], rois = in[1], batch = in[2];
  if (x.rank() != 4) return refuse(x, Code::kShape, format("x has rank {}, not 4", x.rank()));
  if (batch.rank() != 1) return refuse(x, Code::kShape, format("batch has rank {}, not 1", batch.rank()));
  const Dim& count = batch.dim(0);
  if (!require_shape(rois, "rois", {count, 4})) return {};
  bool half_pixel = attrs.flag("half_pixel");
  int64_t sampling = attrs.i64("sampling"), bins[] = {attrs.i64("out_h"), attrs.i64("out_w")};
  Expr box = cast(rois, kPosition) * attrs.f64("scale");
  if (half_pixel) box = box - 0.5;
  std::vector<Dim> place{count, bins[0] * sampling, bins[1] * sampling};
  std::vector<std::vector<Tap>> taps;
  std::vector<Expr> sizes{size_of(x, 0)};
  taps.push_back({{broadcast_to(reshape(cast(batch, kPosition), {count, 1, 1}), place), Expr(), Expr()}});
  for (int64_t axis = 0; axis < 2; axis++) {  // boxes are x, y, x, y
    Expr start = slice(box, 1, 1 - axis, 2 - axis), end = slice(box, 1, 3 - axis, 4 - axis);
    Expr c = bin_samples(start, end, bins[axis], sampling, half_pixel);
    std::vector<Dim> along{count, 1, 1};
    along[static_cast<size_t>(1 + axis)] = place[static_cast<size_t>(1 + axis)];
    sizes.push_back(size_of(x, 2 + axis));
    taps.push_back(edge_taps(c, sizes.back(), place, along));
  }
  Expr y = weighted_sum(channels_last(x), 0, taps, sizes);
  if (!y.valid()) return {};
  y = reshape(y, {count, bins[0], sampling, bins[1], sampling, x.dim(1)});
  y = attrs.is("mode", "max") ? reduce(y, "max", {2, 4}, KeepDims::kNo)
                              : reduce(y, "sum", {2, 4}, KeepDims::kNo) / static_cast<double>(sampling * sampling);
  return {transpose(y, {0, 3, 1, 2})};
}

// ---- deform_conv ----

struct Deformed {
  Expr x, w, offset;
  Dim items, channels, kernel_h, kernel_w, out_h, out_w;
  int64_t groups, offset_groups;

  // The y or x coordinate that each tap reads: [N, og, taps, oh, ow].
  Expr coordinate(int64_t axis, const Attrs& attrs) const {
    Builder& b = x.builder();
    auto at = static_cast<size_t>(axis);
    std::vector<Dim> dims{1, 1, kernel_h, kernel_w, out_h, out_w};
    std::vector<Dim> tap(6, 1), place(6, 1);
    tap[2 + at] = dims[2 + at], place[4 + at] = dims[4 + at];
    Expr base = iota(b, place, 4 + axis, kPosition) * static_cast<double>(attrs.i64s("strides")[at]) +
                iota(b, tap, 2 + axis, kPosition) * static_cast<double>(attrs.i64s("dilation")[at]) -
                b.size(attrs.dims("pad_lo")[at], kPosition);
    base = reshape(broadcast_to(base, dims), {1, 1, kernel_h * kernel_w, out_h, out_w});
    std::vector<Dim> split{items, offset_groups, kernel_h * kernel_w, 2, out_h, out_w}, merged = split;
    merged.erase(merged.begin() + 3);
    return base + reshape(slice(reshape(cast(offset, kPosition), split), 3, axis, axis + 1), merged);
  }
};

static std::optional<Deformed> deformed(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], w = in[1], offset = in[2];
  if (x.rank() != 4 || w.rank() != 4 || offset.rank() != 4) {
    refuse(x, Code::kShape, "x, w and offset need rank 4");
    return std::nullopt;
  }
  Deformed conv{
      x, w, offset, x.dim(0), x.dim(1), w.dim(2), w.dim(3), 0, 0, attrs.i64("groups"), attrs.i64("offset_groups")};
  auto out_size = [&](size_t i, const Dim& k) {
    Dim room = x.dims()[2 + i] + attrs.dims("pad_lo")[i] + attrs.dims("pad_hi")[i] -
               Dim(attrs.i64s("dilation")[i]) * (k - Dim(1)) - Dim(1);
    return max(Dim(0), floor_div(room, Dim(attrs.i64s("strides")[i])) + Dim(1));
  };
  conv.out_h = out_size(0, conv.kernel_h), conv.out_w = out_size(1, conv.kernel_w);
  Dim taps = conv.kernel_h * conv.kernel_w * Dim(conv.offset_groups);
  bool fits = require(x, Guard::kEqual, conv.channels, w.dim(1) * Dim(conv.groups)) &&
              require_shape(offset, "offset", {conv.items, taps * Dim(2), conv.out_h, conv.out_w}) &&
              (!in[4] || require_shape(in[4], "mask", {conv.items, taps, conv.out_h, conv.out_w})) &&
              (!in[3] || require_shape(in[3], "bias", {w.dim(0)}));
  return fits ? std::optional(conv) : std::nullopt;
}

Outputs decompose_deform_conv(const Inputs& in, const Attrs& attrs) {
  auto conv = deformed(in, attrs);
  if (!conv) return {};
  Expr x = in[0], w = in[1], bias = in[3], mask = in[4];
  auto split = divided(x, conv->channels, conv->offset_groups), filters = divided(w, w.dim(0), conv->groups);
  if (!split || !filters) return {};
  Dim taps = conv->kernel_h * conv->kernel_w, places = conv->out_h * conv->out_w;
  std::vector<std::vector<Tap>> corners;
  std::vector<Expr> sizes;
  for (int64_t axis = 0; axis < 2; axis++) {
    sizes.push_back(size_of(x, 2 + axis));
    corners.push_back(linear_taps(conv->coordinate(axis, attrs), sizes.back(), Beyond::kZero));
  }
  Expr grouped = reshape(x, {conv->items, conv->offset_groups, *split, x.dim(2), x.dim(3)});
  Expr y = weighted_sum(transpose(grouped, {0, 1, 3, 4, 2}), 2, corners, sizes);  // [N, og, taps, oh, ow, C]
  if (!y.valid()) return {};
  if (mask) y = y * reshape(mask, {conv->items, conv->offset_groups, taps, conv->out_h, conv->out_w, 1});
  Dim depth = w.dim(1) * taps;
  y = reshape(transpose(y, {0, 1, 5, 2, 3, 4}), {conv->items, conv->groups, depth, places});
  y = matmul(reshape(w, {conv->groups, *filters, depth}), y);
  y = reshape(y, {conv->items, w.dim(0), conv->out_h, conv->out_w});
  return {bias ? y + reshape(bias, {w.dim(0), 1, 1}) : y};
}

}  // namespace rlx
