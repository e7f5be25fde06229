// SPDX-License-Identifier: Apache-2.0
// Data movement: elements change their place, never their value.
#include <cstring>

#include "base/dim_gathered.h"
#include "base/shortened.h"
#include "ops/eval.h"

namespace rlx {

// ---- reshape ----

Status infer_reshape(InferArgs& args) {
  const auto& shape = args.attrs.dims("shape");
  RLX_TRY(args.same(element_count(args.dims()), element_count(shape), "the number of elements"));
  args.out[0].dims = shape;
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
  for (int64_t from : args.attrs.i64s("perm")) args.out[0].dims.push_back(args.dims()[static_cast<size_t>(from)]);
  return {};
}

Status eval_transpose(EvalArgs& args) {
  Dims from = dense_strides(args.in[0].dims), strides;
  for (int64_t axis : args.attrs.i64s("perm")) strides.push_back(from[static_cast<size_t>(axis)]);
  return copy_strided(args.out[0], args.in[0], strides);
}

Status infer_broadcast_to(InferArgs& args) {
  const auto& shape = args.attrs.dims("shape");
  auto agree = [&](const Dim& to, const Dim& from) {
    return args.same(to, from, text_of(args.dims()) + " does not stretch to " + text_of(shape));
  };
  args.out[0].dims = RLX_TRY(stretch(args.dims(), shape, agree));
  return {};
}

Status eval_broadcast_to(EvalArgs& args) {
  return copy_strided(args.out[0], args.in[0], broadcast_strides(args.in[0].dims, args.out[0].dims));
}

// ---- concat ----

Status infer_concat(InferArgs& args) {
  int64_t axis = args.attrs.i64("axis");
  std::vector<Dim> dims = args.dims(), along;
  for (size_t i = 0; i < args.in.size(); i++) {
    if (args.rank(i) != dims.size())
      return wrong_rank(format("input {}", i), format("{}, that of the first", dims.size()), args.rank(i));
    for (size_t k = 0; k < dims.size(); k++) {
      const Dim& other = args.dims(i)[k];
      if (static_cast<int64_t>(k) == axis)
        along.push_back(other);
      else
        dims[k] = RLX_TRY(args.same(dims[k], other, format("axis {} of input {}", k, i)));
    }
  }
  dims[static_cast<size_t>(axis)] = sum(along);
  args.out[0].dims = std::move(dims);
  return {};
}

Status eval_concat(EvalArgs& args) {
  const Operand& out = args.out[0];
  auto axis = static_cast<size_t>(args.attrs.i64("axis"));
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

// The same over expressions. Where ranges or guards decide a clamp, no min or max remains.
static SliceRange<Dim> slice_range(const InferArgs& args, const Dim& n, Dim start, Dim end, int64_t step) {
  if (n.is_literal() && start.is_literal() && end.is_literal()) {
    auto range = slice_range(n.literal(), start.literal(), end.literal(), step);
    return {range.start, range.length};
  }
  auto from_end = [&](const Dim& bound) { return bound.is_literal() && bound.literal() < 0 ? n + bound : bound; };
  auto clamp = [&](const Dim& bound, const Dim& lo, const Dim& hi) {
    Dim low = args.graph.implies(Guard::kLessEqual, lo, bound) ? bound
              : args.graph.range(lo - bound).lo >= 0           ? lo
                                                               : max(bound, lo);
    return args.graph.implies(Guard::kLessEqual, low, hi)   ? low
           : args.graph.implies(Guard::kLessEqual, hi, low) ? hi
                                                            : min(low, hi);
  };
  if (step > 0) {
    // How exporters write "to the end". A start past the end makes the length negative, hence 0.
    bool to_end = end.is_literal() && end.literal() >= kAboveEverySize;
    start = from_end(start), end = to_end ? n : clamp(from_end(end), 0, n);
    start = args.graph.range(start).hi <= 0 ? Dim(0) : args.not_negative(start);
  } else {
    bool to_front = end.is_literal() && end.literal() <= -kAboveEverySize;
    start = clamp(from_end(start), -1, n - 1), end = to_front ? Dim(-1) : clamp(from_end(end), -1, n - 1);
  }
  Dim span = gathered(step > 0 ? end - start : start - end);
  int64_t stride = step > 0 ? step : -step;
  return {start, args.not_negative(floor_div(span + Dim(stride - 1), stride))};
}

struct SliceAttrs {
  const std::vector<Dim>&starts, &ends;
  const std::vector<int64_t>& axes;
  std::vector<int64_t> steps;
  SliceAttrs(const Attrs& attrs)
      : starts(attrs.dims("starts")), ends(attrs.dims("ends")), axes(attrs.i64s("axes")), steps(attrs.i64s("steps")) {
    // A step larger than every size takes only the first position.
    for (int64_t& step : steps) step = std::clamp(step, -kAboveEverySize, kAboveEverySize);
  }
};

// A symbolic bound never counts from the end (semantics.md S8). As a number it would, so the guard does not follow from
// the node at other sizes.
static Status require_not_negative(InferArgs& args, const Dim& bound) {
  if (args.graph.range(bound).hi < 0)
    return args.fail(Code::kShape, "the bound " + shortened(bound.text()) + " is negative")
        .with("expected", "0 or more")
        .with("got", shortened(bound.text()));
  return args.graph.add_guard({Guard::kLessEqual, 0, bound, args.where()});
}

Status infer_slice(InferArgs& args) {
  SliceAttrs slice(args.attrs);
  args.out[0].dims = args.dims();
  for (size_t i = 0; i < slice.axes.size(); i++) {
    if (slice.steps[i] == 0) return args.fail(Code::kOption, "a step must not be 0");
    for (const Dim& bound : {slice.starts[i], slice.ends[i]})
      if (!bound.is_literal()) RLX_TRY(require_not_negative(args, bound));
    Dim& dim = args.out[0].dims[static_cast<size_t>(slice.axes[i])];
    dim = slice_range(args, dim, slice.starts[i], slice.ends[i], slice.steps[i]).length;
  }
  return {};
}

Status eval_slice(EvalArgs& args) {
  SliceAttrs slice(args.attrs);
  Dims strides = dense_strides(args.in[0].dims);
  int64_t offset = 0;
  for (size_t i = 0; i < slice.starts.size(); i++) {
    auto axis = static_cast<size_t>(slice.axes[i]);
    int64_t start = RLX_TRY(evaluate(slice.starts[i], args.sizes)), end = RLX_TRY(evaluate(slice.ends[i], args.sizes));
    auto range = slice_range(args.in[0].dims[axis], start, end, slice.steps[i]);
    offset += range.start * strides[axis];
    strides[axis] *= range.length > 1 ? slice.steps[i] : 0;
  }
  return copy_strided(args.out[0], args.in[0], strides, offset);
}

// ---- dim_size ----

Status infer_dim_size(InferArgs&) {
  return {};
}

Status eval_dim_size(EvalArgs& args) {
  *args.out[0].as<int64_t>() = args.in[0].dims[static_cast<size_t>(args.attrs.i64("axis"))];
  return {};
}

}  // namespace rlx
