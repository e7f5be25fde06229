// SPDX-License-Identifier: Apache-2.0
// Reductions, running folds, and the composites of reductions.
#include <cmath>

#include "ops/eval.h"
#include "ops/expr.h"
#include "ops/fold.h"

namespace rlx {

Status check_fold(InferArgs& args) {
  DType dtype = args.in[0]->dtype;
  if (Fold::named(args.attrs.str("fn")).accepts(dtype)) return {};
  return args.fail(Code::kDtype, args.attrs.str("fn") + " is not defined for " + std::string(name(dtype)));
}

// ---- reduce ----

Status infer_reduce(InferArgs& args) {
  RLX_TRY(check_fold(args));
  const std::vector<int64_t>& axes = args.attrs.i64s("axes");
  size_t next = 0;
  for (size_t i = 0; i < args.rank(); i++) {
    bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    next += reduced;
    if (!reduced)
      args.out[0].dims.push_back(args.dims()[i]);
    else if (args.attrs.flag("keep_dims"))
      args.out[0].dims.push_back(1);
  }
  return {};
}

// The input axes, divided into kept ones (with the strides of input and output) and reduced ones.
struct ReducedAxes {
  Dims kept, kept_strides, reduced, reduced_strides;
  ReducedAxes(const EvalArgs& args, const Operand& in) {
    Dims strides = dense_strides(in.dims);
    std::vector<bool> is_reduced(in.rank(), false);
    for (int64_t axis : args.attrs.i64s("axes")) is_reduced[static_cast<size_t>(axis)] = true;
    for (size_t i = 0; i < in.rank(); i++) {
      (is_reduced[i] ? reduced : kept).push_back(in.dims[i]);
      (is_reduced[i] ? reduced_strides : kept_strides).push_back(strides[i]);
    }
  }
};

Status eval_reduce(EvalArgs& args) {
  const Operand &in = args.in[0], &out = args.out[0];
  ReducedAxes axes(args, in);
  Fold fold = Fold::named(args.attrs.str("fn"));
  int64_t terms = *element_count(std::span<const int64_t>(axes.reduced)), count = out.count();
  visit<dtypes::N | dtypes::B | dtypes::Z>(in.dtype, [&]<class T>() {
    using W = Wide<T>;
    Odometer<1> at(axes.kept, {axes.kept_strides});
    for (int64_t i = 0; i < count; i++, at.next()) {
      W sum = fold.identity<W>();
      Odometer<1> term(axes.reduced, {axes.reduced_strides});
      for (int64_t k = 0; k < terms; k++, term.next())
        sum = fold(sum, widened(in.as<T>()[at.offset(0) + term.offset(0)]));
      out.as<T>()[i] = narrowed<T>(sum);
    }
  });
  return {};
}

// ---- cumulative ----

Status infer_cumulative(InferArgs& args) {
  RLX_TRY(check_fold(args));
  args.out[0].dims = args.dims();
  return {};
}

Status eval_cumulative(EvalArgs& args) {
  const Operand &in = args.in[0], &out = args.out[0];
  Fold fold = Fold::named(args.attrs.str("fn"));
  bool exclusive = args.attrs.flag("exclusive"), reverse = args.attrs.flag("reverse");
  auto axis = static_cast<size_t>(args.attrs.i64("axis"));
  int64_t n = in.dims[axis], stride = dense_strides(in.dims)[axis];
  Dims lines = in.dims, strides = dense_strides(in.dims);
  lines[axis] = 1;
  int64_t count = *element_count(std::span<const int64_t>(lines));
  visit<dtypes::N | dtypes::B | dtypes::Z>(in.dtype, [&]<class T>() {
    Odometer<1> at(lines, {strides});
    for (int64_t i = 0; i < count; i++, at.next()) {
      Wide<T> running = fold.identity<Wide<T>>();
      for (int64_t k = 0; k < n; k++) {
        int64_t offset = at.offset(0) + (reverse ? n - 1 - k : k) * stride;
        Wide<T> next = fold(running, widened(in.as<T>()[offset]));
        out.as<T>()[offset] = narrowed<T>(exclusive ? running : next);
        running = next;
      }
    }
  });
  return {};
}

// ---- composites ----

// A reduction of x along the axes of the attributes.
static Expr reduced(Expr x, const char* fn, const Attrs& attrs) {
  return reduce(x, fn, attrs.i64s("axes"), KeepDims{attrs.flag("keep_dims")});
}

// The number of elements that each result reduces.
static Expr terms(Expr x, const Attrs& attrs) {
  Dim count = 1;
  for (int64_t axis : attrs.i64s("axes")) count *= x.dim(axis);
  return x.builder().size(count, x.dtype());
}

Outputs decompose_mean(const Inputs& in, const Attrs& attrs) {
  return {reduced(in[0], "sum", attrs) / terms(in[0], attrs)};
}
Outputs decompose_sum(const Inputs& in, const Attrs& attrs) {
  return {reduced(in[0], "sum", attrs)};
}
Outputs decompose_any(const Inputs& in, const Attrs& attrs) {
  return {reduced(in[0], "max", attrs)};
}
Outputs decompose_all(const Inputs& in, const Attrs& attrs) {
  return {reduced(in[0], "min", attrs)};
}

Outputs decompose_var(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], c = x - mean(x, attrs.i64s("axes"));
  Expr count = terms(x, attrs) - static_cast<double>(attrs.i64("correction"));
  return {reduced(c * c, "sum", attrs) / count};
}
Outputs decompose_std(const Inputs& in, const Attrs& attrs) {
  return {sqrt(in.builder().op(Op::kVar, {in[0]}, attrs.named()))};
}

Outputs decompose_reduce_l1(const Inputs& in, const Attrs& attrs) {
  return {reduced(abs(in[0]), "sum", attrs)};
}
Outputs decompose_reduce_l2(const Inputs& in, const Attrs& attrs) {
  Expr s = reduced(in[0] * in[0], "sum", attrs), is_zero = equal(s, 0);
  return {where(is_zero, 0, sqrt(where(is_zero, 1, s)))};  // the inner choice keeps the gradient at 0 finite
}
Outputs decompose_sum_square(const Inputs& in, const Attrs& attrs) {
  return {reduced(in[0] * in[0], "sum", attrs)};
}
Outputs decompose_log_sum(const Inputs& in, const Attrs& attrs) {
  return {log(reduced(in[0], "sum", attrs))};
}

Outputs decompose_logsumexp(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  const Axes& axes = attrs.i64s("axes");
  auto shift = [&](KeepDims keep_dims) {
    Expr largest = reduce(x, "max", axes, keep_dims);
    return stop_gradient(where(unary(Op::kIsFinite, largest), largest, 0));
  };
  return {shift(KeepDims{attrs.flag("keep_dims")}) + log(reduced(exp(x - shift(KeepDims::kYes)), "sum", attrs))};
}

}  // namespace rlx
