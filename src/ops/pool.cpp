// SPDX-License-Identifier: Apache-2.0
// Pooling: folds over spatial windows. `ceil_mode` adds padding at the end for one more window, if that window begins
// inside x or its leading padding.
#include "ops/expr.h"

namespace rlx {

// The windows of a pool over [N, C, ...] as reduce_window has them: a list entry for every axis.
struct Pool {
  Axes window{1, 1}, strides{1, 1}, dilation{1, 1};
  std::vector<Dim> lo{0, 0}, hi{0, 0};
  std::vector<Dim> asked_hi{0, 0};  // the requested padding, without that of ceil_mode

  Expr fold(Expr x, const char* fn) const { return fold(x, fn, lo, hi); }
  Expr fold(Expr x, const char* fn, const std::vector<Dim>& pad_lo, const std::vector<Dim>& pad_hi) const {
    if (!x.valid()) return x;  // the builder has failed
    return is_whole(x, pad_lo, pad_hi) ? reduce(x, fn, space()) : apply(Op::kReduceWindow, x, fn, pad_lo, pad_hi);
  }
  // Whether there is one window, which is all of x.
  bool is_whole(Expr x, const std::vector<Dim>& pad_lo, const std::vector<Dim>& pad_hi) const {
    for (int64_t axis : space()) {
      auto i = static_cast<size_t>(axis);
      if (!x.dims()[i].is(window[i]) || dilation[i] != 1 || !pad_lo[i].is(0) || !pad_hi[i].is(0)) return false;
    }
    return true;
  }
  Axes space() const {
    Axes axes;
    for (int64_t i = 2; i < std::ssize(window); i++) axes.push_back(i);
    return axes;
  }
  Expr apply(Op op, Expr x, const char* fn, const std::vector<Dim>& pad_lo, const std::vector<Dim>& pad_hi) const {
    return x.builder().op(op, {x},
                          {{"fn", fn},
                           {"window", window},
                           {"strides", strides},
                           {"dilation", dilation},
                           {"pad_lo", pad_lo},
                           {"pad_hi", pad_hi}});
  }
};

static Dim ceil_div(const Dim& a, int64_t b) {
  return floor_div(a + (b - 1), b);
}

// The padding of ceil_mode at the end: enough for one more window, if that begins inside x or its leading padding. It
// always does if a window is at least as long as a stride plus the requested padding at the end. Then the form is
// short, which matters because pools are nested.
static Dim ceil_padding(const Graph& graph, const Dim& n, const Dim& lo, const Dim& hi, int64_t extent,
                        int64_t stride) {
  Dim all = ceil_div(n + lo + hi - extent, stride) + 1;
  bool begins_inside = hi.is_literal() && hi.literal() + stride <= extent;
  Dim windows = begins_inside ? all : min(all, max(all - 1, ceil_div(n + lo, stride)));
  return graph.not_negative((windows - 1) * Dim(stride) + extent - n - lo);
}

static std::optional<Pool> pool_of(Expr x, const Attrs& attrs) {
  const Axes& kernel = attrs.i64s("kernel");
  size_t axes = kernel.size();
  if (x.rank() != axes + 2) {
    x.builder().fail(wrong_rank("x", format("{}, for a kernel of {}", axes + 2, plural(axes, "axis")), x.rank()));
    return std::nullopt;
  }
  Pool pool;
  for (size_t i = 0; i < axes; i++) {
    int64_t stride = attrs.i64s("strides")[i], dilation = attrs.i64s("dilation")[i];
    const Dim &lo = attrs.dims("pad_lo")[i], &hi = attrs.dims("pad_hi")[i];
    const Dim& n = x.dims()[2 + i];
    pool.window.push_back(kernel[i]);
    pool.strides.push_back(stride);
    pool.dilation.push_back(dilation);
    pool.lo.push_back(lo);
    pool.asked_hi.push_back(hi);
    int64_t extent = (Dim(dilation) * (kernel[i] - 1) + 1).literal();  // saturated
    pool.hi.push_back(attrs.flag("ceil_mode") ? ceil_padding(x.builder().graph(), n, lo, hi, extent, stride) : hi);
  }
  return pool;
}

Outputs decompose_max_pool(const Inputs& in, const Attrs& attrs) {
  auto pool = pool_of(in[0], attrs);
  if (!pool) return {};
  return {pool->fold(in[0], "max")};
}

// The p-norm of each window.
Outputs decompose_lp_pool(const Inputs& in, const Attrs& attrs) {
  auto pool = pool_of(in[0], attrs);
  if (!pool) return {};
  Expr p = scalar_like(in[0], static_cast<double>(attrs.i64("p")));
  return {binary(Op::kPow, pool->fold(binary(Op::kPow, abs(in[0]), p), "sum"), 1.0 / p)};
}

Outputs decompose_max_pool_with_indices(const Inputs& in, const Attrs& attrs) {
  auto pool = pool_of(in[0], attrs);
  if (!pool) return {};
  return {in.builder().op(Op::kMaxPool, {in[0]}, attrs.named()),
          pool->apply(Op::kArgReduceWindow, in[0], "max", pool->lo, pool->hi)};
}

// Sums divided by counts. With count_include_pad requested padding is counted; padding of ceil_mode never is.
Outputs decompose_avg_pool(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  auto pool = pool_of(x, attrs);
  if (!pool) return {};
  std::vector<Dim> counted = x.dims(), lo = pool->lo, hi = pool->hi;
  counted[0] = counted[1] = 1;
  for (size_t i = 2; i < counted.size() && attrs.flag("count_include_pad"); i++) {
    counted[i] += lo[i] + min(hi[i], pool->asked_hi[i]);
    lo[i] = 0;
    hi[i] = max(0, hi[i] - pool->asked_hi[i]);
  }
  Expr ones = broadcast_to(scalar_like(x, 1), counted);
  return {pool->fold(x, "sum") / pool->fold(ones, "sum", lo, hi)};
}

}  // namespace rlx
