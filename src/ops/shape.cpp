// SPDX-License-Identifier: Apache-2.0
// Data movement: elements change their place, never their value.
#include <cstring>

#include "ops/eval.h"

namespace rlx {

// ---- reshape ----

// The one -1 of a shape as the exact quotient of the rest.
static Result<std::vector<Dim>> resolve_shape(InferArgs& args) {
  std::vector<Dim> shape = args.attrs.dims("shape");
  Dim total = element_count(args.dims()), known = 1;
  int64_t open = -1;
  for (size_t i = 0; i < shape.size(); i++) {
    if (!shape[i].is(-1)) {
      if (shape[i].is_literal() && shape[i].literal() < 0)
        return args.fail(Code::kShape, "the size " + shape[i].text() + " is negative");
      known *= shape[i];
    } else if (open >= 0) {
      return args.fail(Code::kShape, "more than one size is -1");
    } else {
      open = static_cast<int64_t>(i);
    }
  }
  if (open < 0) {
    RLX_TRY(args.same(total, known, "the number of elements"));
  } else {
    if (known.is(0)) return args.fail(Code::kShape, "-1 beside a size of 0 has no one answer");
    shape[static_cast<size_t>(open)] =
        RLX_TRY(args.divided(total, known, "the number of elements over the other sizes"));
  }
  return shape;
}

Status infer_reshape(InferArgs& args) {
  args.out[0].dims = RLX_TRY(resolve_shape(args));
  return {};
}

static Status copy_bytes(EvalArgs& args) {
  if (size_t bytes = static_cast<size_t>(args.out[0].count() * element_bytes(args.out[0].dtype)))
    std::memcpy(args.out[0].data, args.in[0].data, bytes);
  return {};
}

Status eval_reshape(EvalArgs& args) {
  return copy_bytes(args);
}

// ---- movement by strides: out[i] = in[offset + sum index * stride] ----

static Status copy_strided(const Operand& out, const Operand& in, const Dims& strides, int64_t offset = 0) {
  visit<dtypes::A>(out.dtype, [&]<class T>() {
    Odometer<1> at(out.dims, {strides});
    int64_t count = out.count();
    for (int64_t i = 0; i < count; i++, at.next()) out.as<T>()[i] = in.as<T>()[offset + at.offset(0)];
  });
  return {};
}

Status infer_transpose(InferArgs& args) {
  const auto& perm = args.attrs.i64s("perm");
  if (perm.size() != args.rank())
    return args.fail(Code::kOption, format("'perm' names {} axes of a value of rank {}", perm.size(), args.rank()));
  RLX_TRY(args.axes(perm, args.rank()));
  for (int64_t from : perm) args.out[0].dims.push_back(args.dims()[normal_axis(from, perm.size())]);
  return {};
}

Status eval_transpose(EvalArgs& args) {
  const auto& perm = args.attrs.i64s("perm");
  Dims from = dense_strides(args.in[0].dims), strides;
  for (int64_t axis : perm) strides.push_back(from[normal_axis(axis, perm.size())]);
  return copy_strided(args.out[0], args.in[0], strides);
}

Status infer_broadcast_to(InferArgs& args) {
  const auto& shape = args.attrs.dims("shape");
  if (shape.size() < args.rank())
    return args.fail(Code::kShape, format("rank {} does not broadcast to rank {}", args.rank(), shape.size()));
  args.out[0].dims = shape;
  for (size_t i = 0; i < args.rank(); i++) {
    Dim& target = args.out[0].dims[shape.size() - args.rank() + i];
    if (!args.dims()[i].is(1)) target = RLX_TRY(args.same(target, args.dims()[i], format("axis {} of x", i)));
  }
  for (const Dim& dim : args.out[0].dims)
    if (args.graph.range(dim).hi < 0) return args.fail(Code::kShape, "the size " + dim.text() + " is negative");
  return {};
}

Status eval_broadcast_to(EvalArgs& args) {
  return copy_strided(args.out[0], args.in[0], broadcast_strides(args.in[0].dims, args.out[0].dims));
}

// ---- concat ----

Status infer_concat(InferArgs& args) {
  if (args.rank() == 0) return args.fail(Code::kShape, "a scalar has no axis to join along");
  int64_t axis = RLX_TRY(args.axis(args.attrs.i64("axis"), args.rank()));
  std::vector<Dim> dims = args.dims();
  for (size_t i = 1; i < args.in.size(); i++) {
    if (args.rank(i) != dims.size())
      return args.fail(Code::kShape, format("input {} has rank {}, the first has {}", i, args.rank(i), dims.size()));
    for (size_t k = 0; k < dims.size(); k++) {
      const Dim& other = args.dims(i)[k];
      if (static_cast<int64_t>(k) == axis)
        dims[k] += other;
      else
        dims[k] = RLX_TRY(args.same(dims[k], other, format("axis {} of input {}", k, i)));
    }
  }
  args.out[0].dims = std::move(dims);
  return {};
}

Status eval_concat(EvalArgs& args) {
  const Operand& out = args.out[0];
  size_t axis = normal_axis(args.attrs.i64("axis"), out.rank());
  std::span<const int64_t> dims(out.dims);
  int64_t outer = *element_count(dims.first(axis)), unit = element_bytes(out.dtype);
  int64_t row = *element_count(dims.subspan(axis)) * unit, at = 0;
  for (const Operand& piece : args.in) {
    int64_t bytes = *element_count(std::span<const int64_t>(piece.dims).subspan(axis)) * unit;
    if (bytes)
      for (int64_t i = 0; i < outer; i++)
        std::memcpy(out.data + i * row + at, piece.data + i * bytes, static_cast<size_t>(bytes));
    at += bytes;
  }
  return {};
}

// ---- slice ----

static constexpr int64_t kAboveEverySize = int64_t{1} << 47;

// One axis: the first position read and the number of positions.
template <class Size>
struct SliceRange {
  Size start, length;
};

// Over numbers: a bound below 0 counts from the end; both are clamped, never an error (semantics.md S8).
static SliceRange<int64_t> slice_range(int64_t n, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += n;
  if (end < 0) end += n;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, n), end = std::clamp<int64_t>(end, 0, n);
    return {start, end <= start ? 0 : (end - start - 1) / step + 1};
  }
  start = std::clamp<int64_t>(start, -1, n - 1), end = std::clamp<int64_t>(end, -1, n - 1);
  return {start, start <= end ? 0 : (start - end - 1) / -step + 1};
}

// The same over expressions: a clamp that the ranges decide leaves no trace.
static SliceRange<Dim> slice_range(const InferArgs& args, const Dim& n, Dim start, Dim end, int64_t step) {
  if (n.is_literal() && start.is_literal() && end.is_literal()) {
    auto range = slice_range(n.literal(), start.literal(), end.literal(), step);
    return {range.start, range.length};
  }
  auto from_end = [&](const Dim& bound) { return bound.is_literal() && bound.literal() < 0 ? n + bound : bound; };
  auto clamp = [&](const Dim& bound, const Dim& lo, const Dim& hi) {
    Dim low = args.graph.implies(Guard::kLessEqual, lo, bound) ? bound : max(bound, lo);
    return args.graph.implies(Guard::kLessEqual, low, hi)   ? low
           : args.graph.implies(Guard::kLessEqual, hi, low) ? hi
                                                            : min(low, hi);
  };
  if (step > 0) {
    // The exporters' "to the end"; a start past the end makes the length negative, hence 0.
    bool to_end = end.is_literal() && end.literal() >= kAboveEverySize;
    start = args.not_negative(from_end(start)), end = to_end ? n : clamp(from_end(end), 0, n);
  } else {
    bool to_front = end.is_literal() && end.literal() <= -kAboveEverySize;
    start = clamp(from_end(start), -1, n - 1), end = to_front ? Dim(-1) : clamp(from_end(end), -1, n - 1);
  }
  Dim span = step > 0 ? end - start : start - end;
  int64_t stride = step > 0 ? step : -step;
  return {start, args.not_negative(floor_div(span + Dim(stride - 1), stride))};
}

struct SliceAttrs {
  const std::vector<Dim>&starts, &ends;
  std::vector<int64_t> axes, steps;
  SliceAttrs(const Attrs& attrs)
      : starts(attrs.dims("starts")),
        ends(attrs.dims("ends")),
        axes(attrs.has("axes") ? attrs.i64s("axes") : std::vector<int64_t>()),
        steps(attrs.has("steps") ? attrs.i64s("steps") : std::vector<int64_t>(starts.size(), 1)) {
    if (!attrs.has("axes"))
      for (size_t i = 0; i < starts.size(); i++) axes.push_back(static_cast<int64_t>(i));
    // Any step beyond every size takes the first position alone.
    for (int64_t& step : steps) step = std::clamp(step, -kAboveEverySize, kAboveEverySize);
  }
};

Status infer_slice(InferArgs& args) {
  SliceAttrs slice(args.attrs);
  size_t n = slice.starts.size();
  if (slice.ends.size() != n || slice.axes.size() != n || slice.steps.size() != n)
    return args.fail(Code::kOption, "starts, ends, axes and steps must be equally long");
  RLX_TRY(args.axes(slice.axes, args.rank()));
  args.out[0].dims = args.dims();
  for (size_t i = 0; i < n; i++) {
    if (slice.steps[i] == 0) return args.fail(Code::kOption, "a step of 0 never ends");
    for (const Dim& bound : {slice.starts[i], slice.ends[i]})
      if (!bound.is_literal() && args.graph.range(bound).lo < 0)
        return args.fail(Code::kShape, "the bound " + bound.text() + " may be negative");
    Dim& dim = args.out[0].dims[normal_axis(slice.axes[i], args.rank())];
    dim = slice_range(args, dim, slice.starts[i], slice.ends[i], slice.steps[i]).length;
  }
  return {};
}

Status eval_slice(EvalArgs& args) {
  SliceAttrs slice(args.attrs);
  Dims strides = dense_strides(args.in[0].dims);
  int64_t offset = 0;
  for (size_t i = 0; i < slice.starts.size(); i++) {
    size_t axis = normal_axis(slice.axes[i], args.in[0].rank());
    int64_t start = RLX_TRY(evaluate(slice.starts[i], args.sizes)), end = RLX_TRY(evaluate(slice.ends[i], args.sizes));
    auto range = slice_range(args.in[0].dims[axis], start, end, slice.steps[i]);
    offset += range.start * strides[axis];
    strides[axis] *= range.length > 1 ? slice.steps[i] : 0;
  }
  return copy_strided(args.out[0], args.in[0], strides, offset);
}

// ---- dim_size ----

Status infer_dim_size(InferArgs& args) {
  RLX_TRY(args.axis(args.attrs.i64("axis"), args.rank()));
  return {};
}

Status eval_dim_size(EvalArgs& args) {
  *args.out[0].as<int64_t>() = args.in[0].dims[normal_axis(args.attrs.i64("axis"), args.in[0].rank())];
  return {};
}

}  // namespace rlx
