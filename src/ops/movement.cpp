// SPDX-License-Identifier: Apache-2.0
// Composites that move whole axes: views, pieces, repetition, order. Sizes may be symbolic throughout.
#include "ops/expr.h"

namespace rlx {

static Dim product(const std::vector<Dim>& dims, size_t from, size_t to) {
  return element_count(std::span<const Dim>(dims).subspan(from, to - from));
}

// ---- axes of size 1 ----

Outputs decompose_squeeze(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  std::vector<bool> drop(x.rank(), false);
  for (int64_t axis : attrs.i64s("axes")) {
    if (!require(x, Guard::kEqual, x.dim(axis), 1)) return {};
    drop[static_cast<size_t>(axis)] = true;
  }
  std::vector<Dim> dims;
  for (size_t i = 0; i < x.rank(); i++)
    if (!drop[i]) dims.push_back(x.dims()[i]);
  return {reshape(x, dims)};
}

Outputs decompose_unsqueeze(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  const Axes& axes = attrs.i64s("axes");
  std::vector<bool> is_new(x.rank() + axes.size(), false);
  for (int64_t axis : axes) is_new[static_cast<size_t>(axis)] = true;
  std::vector<Dim> dims;
  size_t next = 0;
  for (bool one : is_new) dims.push_back(one ? Dim(1) : x.dims()[next++]);
  return {reshape(x, dims)};
}

Outputs decompose_flatten(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  auto at = static_cast<size_t>(attrs.i64("axis"));
  return {reshape(x, {product(x.dims(), 0, at), product(x.dims(), at, x.rank())})};
}

// ---- repetition ----

// x with the axis repeated as a whole, or element by element. It goes through rank 3, so that it works for an x of the
// highest rank.
enum class Repeat { kAxis, kElements };
static Expr repeated(Expr x, size_t axis, const Dim& times, Repeat what) {
  if (times.is(1)) return x;
  size_t cut = what == Repeat::kElements ? axis + 1 : axis;
  std::vector<Dim> dims = x.dims();
  Dim before = product(dims, 0, cut), after = product(dims, cut, dims.size());
  dims[axis] *= times;
  return reshape(broadcast_to(reshape(x, {before, 1, after}), {before, times, after}), dims);
}

Outputs decompose_tile(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  const auto& repeats = attrs.dims("repeats");
  for (size_t i = 0; i < repeats.size() && x.valid(); i++) x = repeated(x, i, repeats[i], Repeat::kAxis);
  return {x};
}

Outputs decompose_repeat(const Inputs& in, const Attrs& attrs) {
  return {repeated(in[0], static_cast<size_t>(attrs.i64("axis")), attrs.dim("repeats"), Repeat::kElements)};
}

// ---- pieces ----

// Where the pieces begin, and the end of the last one: pieces of the given sizes, or `parts` equal ones, of which the
// last may be smaller. As cuts of the axis, and not as sums of sizes, these stay short.
static std::vector<Dim> cuts_of(const Dim& n, const Attrs& attrs) {
  std::vector<Dim> cuts{0};
  if (attrs.has("sizes")) {
    for (const Dim& size : attrs.dims("sizes")) cuts.push_back(cuts.back() + size);
    return cuts;
  }
  int64_t parts = attrs.i64("parts");
  auto equal = exact_div(n, parts);
  Dim chunk = equal ? *equal : floor_div(n + Dim(parts - 1), parts);
  for (int64_t i = 1; i < parts; i++) cuts.push_back(equal ? chunk * i : min(n, chunk * i));
  cuts.push_back(n);
  return cuts;
}

Outputs decompose_split(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  constexpr int64_t kMostParts = int64_t{1} << 16;
  int64_t axis = attrs.i64("axis");
  if (attrs.has("parts") && attrs.i64("parts") > kMostParts)
    return refuse(in, Code::kRange, format("parts is {}, at most {} are made", attrs.i64("parts"), kMostParts));
  if (attrs.has("sizes") == attrs.has("parts")) return refuse(in, Code::kOption, "give either 'sizes' or 'parts'");
  const Dim& n = x.dim(axis);
  const std::vector<Dim> cuts = cuts_of(n, attrs);
  if (attrs.has("sizes") && !require(x, Guard::kEqual, n, cuts.back())) return {};
  Outputs pieces;
  for (size_t i = 0; i + 1 < cuts.size(); i++) {
    if (attrs.has("sizes") && !require(x, Guard::kLessEqual, Dim(0), attrs.dims("sizes")[i])) return {};
    if (attrs.has("sizes") && !require(x, Guard::kLessEqual, cuts[i + 1], n)) return {};
    pieces.push_back(slice(x, axis, cuts[i], cuts[i + 1]));
  }
  return pieces;
}

Outputs decompose_stack(const Inputs& in, const Attrs& attrs) {
  int64_t axis = attrs.i64("axis");
  std::vector<Expr> parts;
  for (Expr x : in.all()) {
    if (x.rank() != in[0].rank())
      return {in.builder().fail(wrong_rank("an input", format("{}, that of the first", in[0].rank()), x.rank()))};
    parts.push_back(unsqueeze(x, axis));
  }
  return {concat(parts, axis)};
}

// ---- order ----

Outputs decompose_flip(const Inputs& in, const Attrs& attrs) {
  const Axes& axes = attrs.i64s("axes");
  return {in.builder().op(Op::kSlice, {in[0]},
                          {{"starts", Axes(axes.size(), -1)},
                           {"ends", Axes(axes.size(), INT64_MIN)},  // past the front
                           {"axes", axes},
                           {"steps", Axes(axes.size(), -1)}})};
}

Outputs decompose_roll(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  int64_t axis = attrs.i64("axis"), shift = attrs.i64("shift");
  const Dim& n = x.dim(axis);
  Dim cut = 0;  // the element that comes first
  if (n.is_literal()) {
    int64_t rest = n.is(0) ? 0 : shift % n.literal();
    cut = rest > 0 ? n.literal() - rest : -rest;
  } else if (shift != INT64_MIN && b.graph().implies(Guard::kLessEqual, std::abs(shift), n)) {
    cut = shift <= 0 ? Dim(-shift) : n - Dim(shift);
  } else {  // the shift may go round more than once
    Expr size = b.size(n, DType::kI64), by = binary(Op::kFloorMod, b.size(shift, DType::kI64), size);
    return {gather(x, binary(Op::kFloorMod, iota(b, {n}, 0, DType::kI64) - by, size), axis)};
  }
  if (cut.is(0)) return {x};
  Expr parts[] = {slice(x, axis, cut, n), slice(x, axis, 0, cut)};
  return {concat(parts, axis)};
}

// x[from[i, j], j] where `axis` is 0, and x[i, from[i, j]] where it is 1: whole rows of x.
static Expr rows_at(Expr x, Expr from, int64_t axis) {
  const std::vector<Dim> shape{x.dim(0), x.dim(1), 1};
  std::vector<Dim> along(3, 1);
  along[static_cast<size_t>(1 - axis)] = x.dim(1 - axis);
  Expr own = broadcast_to(iota(x.builder(), along, 1 - axis, from.dtype()), shape), other = reshape(from, shape);
  Expr index = axis == 0 ? concat(std::array{other, own}, 2) : concat(std::array{own, other}, 2);
  return x.builder().op(Op::kGatherNd, {x, index});
}

Outputs decompose_reverse_sequence(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], lens = in[1];
  int64_t time = attrs.i64("time_axis"), batch = attrs.i64("batch_axis");
  if (time == batch) return refuse(in, Code::kOption, "time_axis and batch_axis must differ");
  if (lens.rank() != 1) return {in.builder().fail(wrong_rank("lens", "1", lens.rank()))};
  std::vector<Dim> along_time(x.rank(), 1), along_batch(x.rank(), 1);
  along_time[static_cast<size_t>(time)] = x.dim(time);
  along_batch[static_cast<size_t>(batch)] = x.dim(batch);
  Expr t = iota(in.builder(), along_time, time, lens.dtype()), length = reshape(lens, along_batch);
  Expr from = where(less(t, length), length - 1.0 - t, t);
  if (time < 2 && batch < 2 && x.rank() > 2) return {rows_at(x, from, time)};
  return {in.builder().op(Op::kGatherElements, {x, broadcast_to(from, x.dims())}, {{"axis", time}})};
}

// ---- blocks of images ----

static std::optional<Dim> image_part(const Inputs& in, int64_t axis, int64_t block) {
  if (in[0].rank() == 4) return divided(in[0], in[0].dim(axis), block);
  in.builder().fail(wrong_rank("x", "4", in[0].rank()));
  return std::nullopt;
}

Outputs decompose_depth_to_space(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t b = attrs.i64("block");
  auto channels = image_part(in, 1, b * b);
  if (!channels) return {};
  const Dim &n = x.dim(0), &h = x.dim(2), &w = x.dim(3);
  Expr y = attrs.is("mode", "dcr") ? transpose(reshape(x, {n, b, b, *channels, h, w}), {0, 3, 4, 1, 5, 2})
                                   : transpose(reshape(x, {n, *channels, b, b, h, w}), {0, 1, 4, 2, 5, 3});
  return {reshape(y, {n, *channels, h * b, w * b})};
}

Outputs decompose_space_to_depth(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t b = attrs.i64("block");
  auto rows = image_part(in, 2, b), columns = image_part(in, 3, b);
  if (!rows || !columns) return {};
  const Dim &n = x.dim(0), &c = x.dim(1);
  Expr y = transpose(reshape(x, {n, c, *rows, b, *columns, b}), {0, 3, 5, 1, 2, 4});
  return {reshape(y, {n, c * Dim(b * b), *rows, *columns})};
}

// ---- crops and pads ----

Outputs decompose_center_crop_pad(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  const auto& shape = attrs.dims("shape");
  const Axes& axes = attrs.i64s("axes");
  std::vector<Dim> lo(x.rank(), 0), hi(x.rank(), 0), dims = x.dims();
  for (size_t i = 0; i < axes.size(); i++) {
    auto axis = static_cast<size_t>(axes[i]);
    // One of the two is 0. For a symbolic size only the run knows which.
    Dim crop = max(dims[axis] - shape[i], Dim(0)), grow = max(shape[i] - dims[axis], Dim(0));
    lo[axis] = floor_div(grow, 2) - floor_div(crop, 2);
    hi[axis] = grow - crop - lo[axis];
    dims[axis] = shape[i];
  }
  Expr y = in.builder().op(Op::kPad, {x}, {{"lo", lo}, {"hi", hi}});
  return {y.dims() == dims ? y : reshape(y, dims)};
}

}  // namespace rlx
