// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/run_sizes.h"

namespace rlx::onnx {

namespace {

// The length of a list, which must be known because it is a rank.
std::optional<int64_t> length_of(Call& call, Expr list, const char* what) {
  if (!list.valid()) return std::nullopt;
  if (list.rank() == 1 && is_integer(list.dtype()) && list.dim(0).is_literal() &&
      list.dim(0).literal() <= static_cast<int64_t>(2 * kMaxRank))
    return list.dim(0).literal();
  call.fail_of_sizes(std::string("'") + what + "' must be a list of integers of known length");
  return std::nullopt;
}

Expr item(Expr list, int64_t i) {
  return reshape(slice(cast(list, DType::kI64), 0, i, i + 1), {});
}

Expr size_of(Call& call, Expr x, int64_t axis) {
  return call.builder().size(x.dim(axis), DType::kI64);
}

// 0, 1, ..., count - 1: an axis whose size only the run knows.
Expr places(Call& call, Expr count) {
  return call.op("dynamic_iota", {count});
}

}  // namespace

Expr reshape_in_run(Call& call, Expr x, Expr shape, bool zero_is_size) {
  auto length = length_of(call, shape, "shape");
  if (!length) return x;
  Builder& b = call.builder();
  std::vector<Expr> sizes;
  Expr known = b.scalar(DType::kI64, 1);
  for (int64_t i = 0; i < *length; i++) {
    Expr size = item(shape, i);
    if (!zero_is_size && i < static_cast<int64_t>(x.rank())) size = where(equal(size, 0), size_of(call, x, i), size);
    sizes.push_back(size);
    known = known * where(equal(size, -1), 1, size);
  }
  Expr rest = b.size(element_count(x.dims()), DType::kI64) / known;
  std::vector<Dim> dims;
  for (Expr& size : sizes) dims.push_back(call.run_dim(where(equal(size, -1), rest, size)));
  return reshape(x, dims);
}

// An axis is broadcast by reading it modulo its size, which is that of the result, or 1. If the result has another size
// than both, the run fails in the broadcast. A literal size stays one.
Expr expand_in_run(Call& call, Expr x, Expr shape) {
  auto length = length_of(call, shape, "shape");
  if (!length) return x;
  auto rank = static_cast<int64_t>(x.rank()), result = std::max(rank, *length);
  std::vector<Dim> dims, sizes;  // in the run, and as they are known
  for (int64_t i = 0; i < result - rank; i++) dims.push_back(call.run_dim(item(shape, i)));
  sizes = dims;
  for (int64_t axis = 0; axis < rank; axis++) {
    Dim own = x.dim(axis);
    int64_t at = axis + *length - rank;
    if (at < 0) {
      dims.push_back(own);
    } else {
      Expr target = item(shape, at), size = size_of(call, x, axis);
      Expr wanted = where(equal(target, 1), size, target);
      if (!own.is_literal())
        x = gather(x, call.op("floor_mod", {places(call, where(equal(size, 1), target, size)), size}), axis);
      dims.push_back(call.run_dim(own.is_literal() ? wanted : where(equal(size, 1), target, wanted)));
    }
    sizes.push_back(own.is_literal() && !own.is(1) ? own : dims.back());
  }
  Expr y = broadcast_to(x, dims);
  return sizes == dims ? y : reshape(y, sizes);
}

Expr slice_in_run(Call& call, Expr x, Expr starts, Expr ends, Expr steps, const Axes& axes) {
  Expr one = call.builder().scalar(DType::kI64, 1);
  for (size_t i = 0; i < axes.size(); i++) {
    auto at = static_cast<int64_t>(i);
    Expr size = size_of(call, x, axes[i]), step = steps ? item(steps, at) : one;
    Expr is_down = less(step, 0), low = where(is_down, -one, one - one), high = where(is_down, size - one, size);
    auto clamped = [&](Expr bound, Expr least) {
      bound = where(less(bound, 0), bound + size, bound);
      return minimum(maximum(bound, least), high);
    };
    Expr begin = clamped(item(starts, at), one - one), end = clamped(item(ends, at), low);
    // The span over the step, rounded up: minus the span over minus the step, rounded down.
    Expr count = maximum(-call.op("floor_div", {begin - end, step}), 0);
    x = gather(x, begin + step * places(call, count), axes[i]);
  }
  return x;
}

// Computes for every position of the result which element it shows, if any.
Expr pad_in_run(Call& call, Expr x, Expr pads, const Axes& axes, const std::string& mode, Expr value) {
  auto count = static_cast<int64_t>(axes.size());
  size_t rank = x.rank();  // after a failure x has none
  for (int64_t i = 0; i < count; i++) {
    int64_t axis = axes[static_cast<size_t>(i)];
    Expr size = size_of(call, x, axis), lo = item(pads, i), hi = item(pads, i + count);
    Expr from = places(call, size + lo + hi) - lo, last = size - 1.0;
    Expr nearest = minimum(maximum(from, 0), last);
    if (mode == "wrap") {  // of what negative pads leave
      Expr cut = maximum(-lo, 0), left = size - cut - maximum(-hi, 0);
      nearest = cut + call.op("floor_mod", {from - cut, left});
    }
    if (mode == "reflect") {
      Expr turn = call.op("floor_mod", {from, maximum(last * 2.0, 1)});
      nearest = where(less(turn, size), turn, last * 2.0 - turn);
    }
    if (mode == "constant") {  // positions outside show an extra element at the end
      std::vector<Dim> none(rank), one(rank);
      one[static_cast<size_t>(axis)] = 1;
      x = call.op("pad", {x, value ? value : scalar_like(x, 0)}, {{"lo", none}, {"hi", one}});
      nearest = where(equal(from, nearest), nearest, size);
    }
    x = gather(x, nearest, axis);
  }
  return x;
}

Expr trilu_in_run(Expr x, Expr k, bool upper) {
  Builder& b = x.builder();
  auto rank = static_cast<int64_t>(x.rank());
  Expr row = unsqueeze(iota(b, {x.dim(rank - 2)}, 0, DType::kI64), 1),
       column = iota(b, {x.dim(rank - 1)}, 0, DType::kI64), diagonal = column - row;
  k = reshape(cast(k, DType::kI64), {});
  Expr kept = upper ? less_equal(k, diagonal) : less_equal(diagonal, k);
  return where(kept, x, scalar_like(x, 0));
}

}  // namespace rlx::onnx
