// SPDX-License-Identifier: Apache-2.0
// Sorting, and ops that choose by order. One order everywhere: NaN is greater than every number, -0 equals +0, equal
// keys keep their places (semantics.md N4, N9).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/eval.h"
#include "ops/expr.h"

namespace rlx {

// ---- sort ----

Status infer_sort(InferArgs& args) {
  DType index_dtype = args.attrs.dtype("index_dtype");
  const Dim& n = args.dims()[static_cast<size_t>(args.attrs.i64("axis"))];
  if (index_dtype == DType::kI32 && args.graph.range(n).hi > INT32_MAX)
    return args.fail(Code::kOption, "index_dtype i32 cannot hold every position of an axis of size " + n.text());
  args.out[0].dims = args.dims();
  args.out[1] = {index_dtype, args.dims()};
  return {};
}

template <class T>
static bool sorts_before(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    if (std::isnan(b)) return !std::isnan(a);
  return a < b;
}

Status eval_sort(EvalArgs& args) {
  const Operand &x = args.in[0], &values = args.out[0], &indices = args.out[1];
  auto axis = static_cast<size_t>(args.attrs.i64("axis"));
  bool descending = args.attrs.flag("descending");
  Dims strides = dense_strides(x.dims), lines = x.dims;
  int64_t n = x.dims[axis], stride = strides[axis];
  lines[axis] = 1;
  int64_t count = n ? *element_count(std::span<const int64_t>(lines)) : 0;
  std::vector<int64_t> order(static_cast<size_t>(n));
  visit<dtypes::N | dtypes::B>(x.dtype, [&]<class T>() {
    Odometer<1> line(lines, {strides});
    for (int64_t i = 0; i < count; i++, line.next()) {
      auto key = [&](int64_t k) { return static_cast<Compute<T>>(x.as<T>()[line.offset(0) + k * stride]); };
      std::iota(order.begin(), order.end(), int64_t{0});
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
        return descending ? sorts_before(key(b), key(a)) : sorts_before(key(a), key(b));
      });
      for (int64_t k = 0; k < n; k++) {
        int64_t from = order[static_cast<size_t>(k)], to = line.offset(0) + k * stride;
        values.as<T>()[to] = x.as<T>()[line.offset(0) + from * stride];
        if (indices.dtype == DType::kI32)
          indices.as<int32_t>()[to] = static_cast<int32_t>(from);
        else
          indices.as<int64_t>()[to] = from;
      }
    }
  });
  return {};
}

// ---- chosen by order ----

Outputs decompose_top_k(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t axis = attrs.i64("axis");
  const Dim& k = attrs.dim("k");
  if (!require(x, Guard::kLessEqual, k, x.dim(axis))) return {};
  Outputs sorted = x.builder().ops(
      Op::kSort, {x},
      {{"axis", axis}, {"descending", int64_t{attrs.flag("largest")}}, {"index_dtype", attrs.dtype("index_dtype")}});
  return {slice(sorted[0], axis, 0, k), slice(sorted[1], axis, 0, k)};
}

Outputs decompose_arg_max(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0].dtype() == DType::kBool ? cast(in[0], DType::kU8) : in[0];
  int64_t axis = attrs.i64("axis");
  DType dtype = attrs.dtype("index_dtype");
  bool last = attrs.flag("last");
  if (last) x = b.op(Op::kFlip, {x}, {{"axes", Axes{axis}}});
  Outputs top = b.ops(Op::kTopK, {x}, {{"k", int64_t{1}}, {"axis", axis}, {"index_dtype", dtype}});
  if (!b.status().ok()) return {};
  Expr index = last ? b.size(x.dim(axis) - 1, dtype) - top[1] : top[1];
  if (attrs.flag("keep_dims")) return {index};
  std::vector<Dim> dims = x.dims();
  dims.erase(dims.begin() + axis);
  return {reshape(index, dims)};
}

Outputs decompose_arg_min(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  // bit_not never overflows; negating the least integer would.
  Expr mirrored = is_float(x.dtype()) ? -x : unary(Op::kBitNot, x);
  return {in.builder().op(Op::kArgMax, {mirrored}, attrs.named())};
}

Outputs decompose_hardmax(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t axis = attrs.i64("axis");
  std::vector<Dim> along_axis(x.rank(), 1);
  along_axis[static_cast<size_t>(axis)] = x.dim(axis);
  Expr searched = x;
  if (in.builder().graph().range(x.dim(axis)).lo < 1) {  // an extra element that is never the first: arg_max needs one
    std::vector<Dim> lo(x.rank(), 0), hi(x.rank(), 0);
    hi[static_cast<size_t>(axis)] = 1;
    searched = in.builder().op(Op::kPad, {x, scalar_like(x, -INFINITY)}, {{"lo", lo}, {"hi", hi}});
  }
  bool is_short = in.builder().graph().range(x.dim(axis)).hi < INT32_MAX;
  DType index = is_short ? DType::kI32 : DType::kI64;
  Expr largest = in.builder().op(Op::kArgMax, {searched}, {{"axis", axis}, {"index_dtype", index}});
  return {cast(equal(iota(in.builder(), along_axis, axis, index), largest), x.dtype())};
}

}  // namespace rlx
