// SPDX-License-Identifier: Apache-2.0
// Composites that make values from positions: constants, ranges, masks, one-hot rows.
#include "ops/fill.h"

#include <algorithm>

namespace rlx {

Outputs decompose_full(const Inputs& in, const Attrs& attrs) {
  return {broadcast_to(in.builder().scalar(attrs.dtype("dtype"), attrs.f64("value")), attrs.dims("shape"))};
}

// Column minus row over the last two sizes, for diagonals.
static Expr diagonal_numbers(Builder& b, const Dim& rows, const Dim& columns) {
  return iota(b, {1, columns}, 1, DType::kI64) - iota(b, {rows, 1}, 0, DType::kI64);
}

Outputs decompose_eye(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr k = b.size(attrs.i64("k"), DType::kI64);
  return {cast(equal(diagonal_numbers(b, attrs.dim("n"), attrs.dim("m")), k), attrs.dtype("dtype"))};
}

Outputs decompose_trilu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  Builder& b = in.builder();
  if (x.rank() < 2) return {b.fail(wrong_rank("x", "2 or more", x.rank()))};
  Expr number = diagonal_numbers(b, x.dim(-2), x.dim(-1)), k = b.size(attrs.i64("k"), DType::kI64);
  Expr kept = attrs.flag("upper") ? less_equal(k, number) : less_equal(number, k);
  return {where(kept, x, 0)};
}

Outputs decompose_range(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  DType dtype = attrs.dtype("dtype"), wide = is_float(dtype) ? DType::kF64 : DType::kI64;
  double start = attrs.f64("start"), step = attrs.f64("step");
  bool is_beyond_i64 = dtype == DType::kU64 && start >= 0 && std::max(start, step) >= 0x1p63;
  if (is_beyond_i64) wide = DType::kU64;
  Expr i = iota(b, {attrs.dim("count")}, 0, wide);
  if (is_beyond_i64 && step < 0) return {start - -step * i};
  return {cast(start + step * i, dtype)};
}

// Of integers of 64 bits: u64 holds every distance.
static Expr count_in_u64(Expr start, Expr limit, Expr step) {
  Expr falls = less(step, 0), low = where(falls, limit, start), high = where(falls, start, limit);
  Expr distance = cast(high, DType::kU64) - cast(low, DType::kU64), stride = cast(abs(step), DType::kU64);
  Expr count = minimum((distance - 1.0) / stride + 1.0, 0x1p62);
  return cast(where(logical_and(less(low, high), not_equal(step, 0)), count, 0), DType::kI64);
}

Expr range_count(Expr start, Expr limit, Expr step) {
  if (is_integer(start.dtype()) && element_bytes(start.dtype()) == 8) return count_in_u64(start, limit, step);
  DType wide = is_float(start.dtype()) ? start.dtype() : DType::kI64;
  start = cast(start, wide), limit = cast(limit, wide), step = cast(step, wide);
  Expr steps = maximum(-binary(Op::kFloorDiv, start - limit, step), 0);
  return cast(where(equal(step, 0), 0, steps), DType::kI64);
}

Outputs decompose_dynamic_range(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  for (size_t i = 0; i < 3; i++)
    if (in[i].rank() != 0) return {b.fail(wrong_rank(i == 0 ? "start" : i == 1 ? "limit" : "step", "0", in[i].rank()))};
  NamedAttrs named;
  if (attrs.has("max")) named.emplace_back("max", attrs.dim("max"));
  if (attrs.has("symbol")) named.emplace_back("symbol", attrs.str("symbol"));
  Expr i = cast(b.op(Op::kDynamicIota, {range_count(in[0], in[1], in[2])}, named), in[0].dtype());
  return {in[0] + in[2] * i};
}

Dim lacking(const Graph& graph, const Dim& n) {
  return graph.range(n).lo >= 1 ? Dim(0) : max(Dim(0), Dim(1) - n);
}

Expr never_empty(Expr x, size_t first, size_t count) {
  if (!x.valid()) return x;
  std::vector<Dim> lo(x.rank(), 0), hi = lo;
  bool lacks = false;
  for (size_t axis = first; axis < first + count; axis++) {
    hi[axis] = lacking(x.builder().graph(), x.dims()[axis]);
    lacks |= !hi[axis].is(0);
  }
  return lacks ? x.builder().op(Op::kPad, {x}, {{"lo", lo}, {"hi", hi}}) : x;
}

Outputs decompose_one_hot(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr index = in[0], on = in[1], off = in[2];
  int64_t axis = attrs.i64("axis");
  if (on.rank() != 0) return {b.fail(wrong_rank("on", "0", on.rank()))};
  if (off.rank() != 0) return {b.fail(wrong_rank("off", "0", off.rank()))};
  const Dim& depth = attrs.dim("depth");
  Expr normal = where(less(index, 0), index + b.size(depth, index.dtype()), index);
  std::vector<Dim> along_depth(index.rank() + 1, 1);
  along_depth[static_cast<size_t>(axis)] = depth;
  return {where(equal(unsqueeze(normal, axis), iota(b, along_depth, axis, index.dtype())), on, off)};
}

}  // namespace rlx
