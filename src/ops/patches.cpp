// SPDX-License-Identifier: Apache-2.0
// Windows over spatial axes as tensors: gathered (im2col), scattered back (col2im), and searched for extremes.
#include "ops/expr.h"

namespace rlx {

// The windows along one axis of n elements.
struct Windowed {
  int64_t kernel, stride, dilation;
  Dim n, lo, hi;
  Dim count = {};  // of windows: 0 if one is longer than the padded axis

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
  for (size_t i = axes; i-- > 0;) y = gather(y, padded_positions(b, windows[i]), static_cast<int64_t>(i + 2));
  Axes perm{0, 1};  // kernel positions, then window positions
  for (int64_t first : {2, 3})
    for (size_t i = 0; i < axes; i++) perm.push_back(first + 2 * static_cast<int64_t>(i));
  return {reshape(transpose(y, perm), {x.dim(0), x.dim(1) * product(kernel), places})};
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
  std::vector<Dim> split{p.dim(0), *channels}, lo(2, 0), hi(2, 0), counts;
  for (const Windowed& window : windows)
    split.emplace_back(window.kernel), counts.push_back(window.count), lo.push_back(Dim(0) - window.lo),
        hi.push_back(Dim(0) - window.hi);
  split.insert(split.end(), counts.begin(), counts.end());
  Axes perm{0, 1};  // [n, c, kernels..., counts...] -> [n, c, kernel, count, kernel, count, ...]
  for (size_t i = 0; i < axes; i++)
    perm.insert(perm.end(), {static_cast<int64_t>(2 + i), static_cast<int64_t>(2 + axes + i)});
  Expr y = transpose(reshape(p, split), perm);
  for (size_t i = axes; i-- > 0 && y.valid();) {
    std::vector<Dim> dims(y.dims().begin(), y.dims().begin() + static_cast<int64_t>(2 + 2 * i));
    dims.push_back(windows[i].n + windows[i].lo + windows[i].hi);
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

// Tensors of shape [count of each axis ..., taps]: the values in the windows, their positions, and whether they lie in
// x.
struct Cells {
  Expr value, index, inside;
};

// A searched axis has a dim for its kernel; other axes have none.
struct CellDims {
  std::vector<Dim> counts, kernels;
  std::vector<size_t> slot;  // by axis: its index in `kernels`
  Axes perm;                 // from (count, kernel) pairs to all counts, then all kernels

  explicit CellDims(const std::vector<Windowed>& windows) {
    Axes last;
    int64_t at = 0;
    for (const Windowed& window : windows) {
      slot.push_back(kernels.size());
      counts.push_back(window.count);
      if (!window.is_plain()) kernels.emplace_back(window.kernel), last.push_back(at++);
      perm.push_back(at++);
    }
    perm.insert(perm.end(), last.begin(), last.end());
  }

  // A [kernel, count] matrix of one axis in a shape that broadcasts against [counts..., kernels...].
  Expr spread(Expr matrix, size_t axis, bool is_plain) const {
    std::vector<Dim> dims(counts.size() + kernels.size(), 1);
    dims[axis] = matrix.dim(1);
    if (!is_plain) dims[counts.size() + slot[axis]] = matrix.dim(0);
    return reshape(transpose(matrix, {1, 0}), dims);
  }
};

static Cells cells_of(Expr x, const std::vector<Windowed>& windows, const CellDims& dims) {
  Builder& b = x.builder();
  std::vector<Dim> lo, hi;
  for (const Windowed& window : windows) lo.push_back(window.lo), hi.push_back(window.hi);
  Cells cells{b.op(Op::kPad, {x}, {{"lo", lo}, {"hi", hi}}), b.scalar(DType::kI64, 0), b.scalar(DType::kBool, 1)};
  Dim taps = 1, stride = 1;
  for (size_t i = windows.size(); i-- > 0;) {
    const Windowed& window = windows[i];
    bool is_plain = window.is_plain();
    Expr n = b.size(window.n, DType::kI64);
    Expr place = padded_positions(b, window), position = place - b.size(window.lo, DType::kI64);
    Expr inside = logical_and(less_equal(scalar_like(position, 0), position), less(position, n));
    Expr held = maximum(minimum(position, n - 1.0), 0);
    if (!is_plain) cells.value = gather(cells.value, place, static_cast<int64_t>(i));
    cells.index = cells.index + dims.spread(held * b.size(stride, DType::kI64), i, is_plain);
    cells.inside = logical_and(cells.inside, dims.spread(inside, i, is_plain));
    taps *= Dim(window.kernel), stride *= window.n;
  }
  std::vector<Dim> flat = dims.counts, full = dims.counts;
  full.insert(full.end(), dims.kernels.begin(), dims.kernels.end());
  flat.push_back(taps);
  auto flattened = [&](Expr e) { return reshape(broadcast_to(e, full), flat); };
  return {reshape(transpose(cells.value, dims.perm), flat), flattened(cells.index), flattened(cells.inside)};
}

Outputs decompose_arg_reduce_window(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0];
  const char* fn = attrs.is("fn", "max") ? "max" : "min";
  std::vector<Windowed> windows = windows_of(b.graph(), x.dims(), attrs.i64s("window"), attrs);
  CellDims dims(windows);
  if (dims.perm.size() > kMaxRank)
    return refuse(in, Code::kShape, format("{} axes and {} of their windows", x.rank(), dims.kernels.size()));
  Cells cells = cells_of(x, windows, dims);
  if (!b.status().ok()) return {};
  auto last = static_cast<int64_t>(x.rank());
  Expr extreme = reduce(where(cells.inside, cells.value, fold_identity(x, fn)), fn, {last});
  Expr hit = equal(cells.value, extreme);
  if (is_float(x.dtype())) hit = logical_or(hit, not_equal(cells.value, cells.value));  // a NaN is the extreme
  hit = logical_and(hit, cells.inside);
  // Indices rise along a window, so the least hit is the first.
  Expr none = b.size(element_count(x.dims()), DType::kI64);
  Expr first = reduce(where(hit, cells.index, none), "min", {last}, KeepDims::kNo);
  return {where(less(first, none), first, -1)};
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
