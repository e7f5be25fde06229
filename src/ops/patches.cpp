// SPDX-License-Identifier: Apache-2.0
// Windows over spatial axes as tensors: gathered (im2col), scattered back (col2im), and searched for extremes.
#include "ops/expr.h"

namespace rlx {

// The windows along one axis of n elements.
struct Windowed {
  int64_t kernel, stride, dilation;
  Dim n, lo, hi;
  Dim count = {};  // of windows: 0 if one is longer than the padded axis

  Dim padded() const { return n + lo + hi; }
  bool is_plain() const { return kernel == 1 && stride == 1 && lo.is(0) && hi.is(0); }
};

static std::vector<Windowed> windows_of(const Graph& graph, std::span<const Dim> dims, const Axes& kernel,
                                        const Attrs& attrs) {
  std::vector<Windowed> windows;
  for (size_t i = 0; i < dims.size(); i++) {
    Windowed it{kernel[i], attrs.i64s("strides")[i], attrs.i64s("dilation")[i],
                dims[i],   attrs.dims("pad_lo")[i],  attrs.dims("pad_hi")[i]};
    Dim room = it.n + it.lo + it.hi - (Dim(it.dilation) * Dim(it.kernel - 1) + Dim(1));
    it.count = graph.not_negative(floor_div(room, Dim(it.stride)) + Dim(1));
    windows.push_back(it);
  }
  return windows;
}

// Positions in the padded axis, [kernel, count].
static Expr padded_positions(Builder& b, const Windowed& window) {
  Expr tap = iota(b, {window.kernel, 1}, 0, DType::kI64), place = iota(b, {1, window.count}, 1, DType::kI64);
  return tap * static_cast<double>(window.dilation) + place * static_cast<double>(window.stride);
}

static Dim product(std::span<const int64_t> numbers) {
  Dim total = 1;
  for (int64_t number : numbers) total *= Dim(number);
  return total;
}

// ---- im2col, col2im ----

// The axes of x become two for each axis of the kernel. More than a tensor can have are taken as one axis.
static bool exceeds_ranks(size_t axes) {
  return 2 + 2 * axes > kMaxRank;
}

// Positions in all padded axes, as in one axis: [kernel positions, windows].
static Expr flat_positions(Builder& b, std::span<const Windowed> windows) {
  Expr flat = b.scalar(DType::kI64, 0);
  Dim taps = 1, places = 1;
  for (const Windowed& window : windows) {
    Expr own = reshape(padded_positions(b, window), {1, window.kernel, 1, window.count});
    flat = reshape(flat, {taps, 1, places, 1}) * b.size(window.padded(), DType::kI64) + own;
    taps *= Dim(window.kernel), places *= window.count;
  }
  return reshape(flat, {taps, places});
}

Outputs decompose_im2col(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  const Axes& kernel = attrs.i64s("kernel");
  size_t axes = kernel.size();
  if (x.rank() != axes + 2 || axes == 0)
    return refuse(in, Code::kShape,
                  format("x has rank {}; a kernel of {} needs {}", x.rank(), plural(axes, "axis"), axes + 2));
  std::vector<Windowed> windows = windows_of(b.graph(), std::span(x.dims()).subspan(2), kernel, attrs);
  std::vector<Dim> lo(2, 0), hi(2, 0);
  Dim places = 1;
  for (const Windowed& window : windows) lo.push_back(window.lo), hi.push_back(window.hi), places *= window.count;
  Expr y = b.op(Op::kPad, {x}, {{"lo", lo}, {"hi", hi}});
  std::vector<Dim> columns{x.dim(0), x.dim(1) * product(kernel), places};
  if (exceeds_ranks(axes)) {
    y = reshape(y, {x.dim(0), x.dim(1), element_count(std::span(y.dims()).subspan(2))});
    return {reshape(gather(y, flat_positions(b, windows), 2), columns)};
  }
  for (size_t i = axes; i-- > 0;) y = gather(y, padded_positions(b, windows[i]), static_cast<int64_t>(i + 2));
  Axes perm{0, 1};  // kernel positions, then window positions
  for (int64_t first : {2, 3})
    for (size_t i = 0; i < axes; i++) perm.push_back(first + 2 * static_cast<int64_t>(i));
  return {reshape(transpose(y, perm), columns)};
}

Outputs decompose_col2im(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr p = in[0];
  const Axes& kernel = attrs.i64s("kernel");
  const std::vector<Dim>& shape = attrs.dims("shape");
  size_t axes = kernel.size();
  Attrs full = attrs;  // with every list as long as the kernel
  for (const char* name : {"strides", "dilation"})
    if (!attrs.has(name)) full = full.with(name, Axes(axes, 1));
  for (const char* name : {"pad_lo", "pad_hi"})
    if (!attrs.has(name)) full = full.with(name, std::vector<Dim>(axes, 0));
  bool suits = axes > 0 && shape.size() == axes && full.dims("pad_lo").size() == axes &&
               full.dims("pad_hi").size() == axes && full.i64s("strides").size() == axes &&
               full.i64s("dilation").size() == axes;
  if (!suits) return refuse(in, Code::kOption, "every list needs one entry per axis of 'kernel'");
  if (p.rank() != 3) return refuse(in, Code::kShape, format("p has rank {}, not 3", p.rank()));
  auto channels = divided(p, p.dim(1), product(kernel));
  if (!channels) return {};
  std::vector<Windowed> windows = windows_of(b.graph(), shape, kernel, full);
  std::vector<Dim> split{p.dim(0), *channels}, padded = split, lo(2, 0), hi(2, 0), counts;
  for (const Windowed& window : windows)
    split.emplace_back(window.kernel), counts.push_back(window.count), padded.push_back(window.padded()),
        lo.push_back(Dim(0) - window.lo), hi.push_back(Dim(0) - window.hi);
  if (exceeds_ranks(axes)) {
    Expr columns = reshape(p, {p.dim(0), *channels, product(kernel), element_count(counts)});
    Expr zeros = broadcast_to(scalar_like(p, 0), {p.dim(0), *channels, element_count(std::span(padded).subspan(2))});
    Expr sum =
        b.op(Op::kScatter, {zeros, flat_positions(b, windows), columns}, {{"axis", int64_t{2}}, {"reduction", "add"}});
    return {b.op(Op::kPad, {reshape(sum, padded)}, {{"lo", lo}, {"hi", hi}})};
  }
  split.insert(split.end(), counts.begin(), counts.end());
  Axes perm{0, 1};  // [n, c, kernels..., counts...] -> [n, c, kernel, count, kernel, count, ...]
  for (size_t i = 0; i < axes; i++)
    perm.insert(perm.end(), {static_cast<int64_t>(2 + i), static_cast<int64_t>(2 + axes + i)});
  Expr y = transpose(reshape(p, split), perm);
  for (size_t i = axes; i-- > 0 && y.valid();) {
    std::vector<Dim> dims(y.dims().begin(), y.dims().begin() + static_cast<int64_t>(2 + 2 * i));
    dims.push_back(windows[i].padded());
    dims.insert(dims.end(), y.dims().begin() + static_cast<int64_t>(4 + 2 * i), y.dims().end());
    y = b.op(Op::kScatter, {broadcast_to(scalar_like(y, 0), dims), padded_positions(b, windows[i]), y},
             {{"axis", static_cast<int64_t>(2 + 2 * i)}, {"reduction", "add"}});
  }
  return {b.op(Op::kPad, {y}, {{"lo", lo}, {"hi", hi}})};
}

// ---- where extremes are ----

// The fold of nothing (semantics.md N8).
static Expr fold_identity(Expr x, const char* fn) {
  return reduce(broadcast_to(scalar_like(x, 0), {0}), fn, {0}, KeepDims::kNo);
}

// The extreme of each window along the axes so far, and where in x it is: `none` for a window that holds no element.
struct FoundExtremes {
  Expr value, index;
};

// Of windows along one axis more. Of an extreme that stands in x more than once, the index is the least, and so it is
// that of the first in the window. An axis beside all others would be one too many for a tensor of the largest rank, so
// it stands between two that take in those before and after it.
static FoundExtremes along_axis(const FoundExtremes& before, const Windowed& window, size_t axis, const char* fn,
                                Expr none) {
  Builder& b = none.builder();
  std::vector<Dim> dims = before.value.dims(), lo(dims.size(), 0), hi = lo;
  lo[axis] = window.lo, hi[axis] = window.hi;
  Dim outer = element_count(std::span(dims).first(axis)), inner = element_count(std::span(dims).subspan(axis + 1));
  Expr places = padded_positions(b, window);
  auto windows_of = [&](Expr x, Expr outside) {
    x = b.op(Op::kPad, {x, outside}, {{"lo", lo}, {"hi", hi}});
    return gather(reshape(x, {outer, window.padded(), inner}), places, 1);
  };
  Expr value = windows_of(before.value, fold_identity(before.value, fn)), index = windows_of(before.index, none);
  Expr extreme = reduce(value, fn, {1});
  Expr hit = equal(value, extreme);
  if (is_float(value.dtype())) hit = logical_or(hit, not_equal(value, value));  // a NaN is the extreme
  dims[axis] = window.count;
  return {reshape(extreme, dims), reshape(reduce(where(hit, index, none), "min", {1}), dims)};
}

Outputs decompose_arg_reduce_window(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  std::vector<Windowed> windows = windows_of(b.graph(), x.dims(), attrs.i64s("window"), attrs);
  Dim count = element_count(x.dims());
  Expr none = b.size(count, DType::kI64);
  FoundExtremes found{x, reshape(iota(b, {count}, 0, DType::kI64), x.dims())};
  for (size_t axis = windows.size(); axis-- > 0 && b.status().ok();)
    if (!windows[axis].is_plain())
      found = along_axis(found, windows[axis], axis, attrs.is("fn", "max") ? "max" : "min", none);
  return {where(less(found.index, none), found.index, -1)};
}

Outputs decompose_max_unpool(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], index = in[1];
  if (!require_shape(index, "idx", x.dims())) return {};
  const std::vector<Dim>& shape = attrs.dims("shape");
  std::vector<Dim> flat{element_count(x.dims())};
  Expr zeros = broadcast_to(scalar_like(x, 0), {element_count(shape)});
  return {reshape(in.builder().op(Op::kScatter, {zeros, reshape(index, flat), reshape(x, flat)}), shape)};
}

}  // namespace rlx
