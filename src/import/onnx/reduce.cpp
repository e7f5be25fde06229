// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that reduce, search or sort along axes.
#include "import/onnx/call.h"
#include "import/onnx/fold.h"

namespace rlx::onnx {

namespace {

// Axes are an input since opset 18 (for ReduceSum since 13). No axes means all, or none with noop_with_empty_axes.
struct ReduceArgs {
  std::vector<int64_t> axes;
  bool identity = false;
  bool keep_dims = true;
};

ReduceArgs reduce_args(Call& call, int64_t input_since) {
  ReduceArgs args;
  bool noop = call.i64("noop_with_empty_axes", 0) != 0;
  args.keep_dims = call.i64("keepdims", 1) != 0;
  if (call.opset() < input_since)
    args.axes = call.i64s("axes");
  else if (call.has(1))
    args.axes = call.numbers(1, "axes");
  args.identity = args.axes.empty() && noop;
  size_t rank = call.type(0).rank();
  args.axes = args.axes.empty() && !noop ? trailing_axes(0, rank) : call.axes(args.axes, rank);
  return args;
}

template <int64_t kInputSince>
void build_fn(Call& call) {
  ReduceArgs args = reduce_args(call, kInputSince);
  std::string fn(call.kind().op);
  call.out(0, args.identity ? call.in(0) : reduce(call.in(0), fn.c_str(), args.axes, KeepDims{args.keep_dims}));
}

// Our ops that reduce: mean, reduce_l1, ... With an empty list of axes only their elementwise part remains.
void build_op(Call& call) {
  ReduceArgs args = reduce_args(call, 18);
  call.out(0, call.op(call.kind().op, {call.in(0)}, {{"axes", args.axes}, {"keep_dims", int64_t{args.keep_dims}}}));
}

// Reductions with real results; for integers the result is truncated.
void build_real(Call& call) {
  Expr x = call.in(0);
  if (!x.valid() || !is_integer(x.dtype())) return build_op(call);
  ReduceArgs args = reduce_args(call, 18);
  Expr y =
      call.op(call.kind().op, {cast(x, DType::kF64)}, {{"axes", args.axes}, {"keep_dims", int64_t{args.keep_dims}}});
  call.out(0, cast(y, x.dtype()));
}

// Without a start there must be at least one item.
Folded fold_all(Call& call, int64_t input_since, std::optional<Dim> start, Dim (*step)(const Dim&, const Dim&)) {
  const Sizes* x = call.sizes(0);
  if (!x || x->dims.size() != 1 || (call.has(1) && !call.sizes(1))) return std::nullopt;
  ReduceArgs args = reduce_args(call, input_since);
  if (args.identity || args.axes.empty()) return std::nullopt;
  for (const Dim& item : x->items) start = start ? step(*start, item) : item;
  std::vector<int64_t> dims(args.keep_dims ? 1 : 0, 1);
  return start ? Folded(Sizes{x->dtype, dims, {*start}}) : std::nullopt;
}
Folded fold_prod(Call& call) {
  return fold_all(call, 18, 1, [](const Dim& a, const Dim& b) { return a * b; });
}
Folded fold_sum(Call& call) {
  return fold_all(call, 13, 0, [](const Dim& a, const Dim& b) { return a + b; });
}

Folded fold_largest(Call& call) {
  return fold_all(call, 18, {}, [](const Dim& a, const Dim& b) { return max(a, b); });
}
Folded fold_least(Call& call) {
  return fold_all(call, 18, {}, [](const Dim& a, const Dim& b) { return min(a, b); });
}

void build_arg(Call& call) {
  Expr x = call.in(0);
  int64_t axis = call.axis(call.i64("axis", 0), x.rank()), keep = call.i64("keepdims", 1),
          last = call.i64("select_last_index", 0);
  call.out(0, call.op(call.kind().op, {x}, {{"axis", axis}, {"keep_dims", keep}, {"last", last}}));
}

void build_cumulative(Call& call) {
  std::vector<int64_t> axis = call.numbers(1, "axis");
  if (axis.size() != 1) return call.fail(Code::kData, "'axis' is not one number");
  int64_t exclusive = call.i64("exclusive", 0), reverse = call.i64("reverse", 0);
  call.out(
      0, call.op(
             "cumulative", {call.in(0)},
             {{"fn", std::string(call.kind().op)}, {"axis", axis[0]}, {"exclusive", exclusive}, {"reverse", reverse}}));
}

// k was an attribute before opset 10.
void build_top_k(Call& call) {
  call.ignore("sorted");  // our results are always sorted, which is a legal unsorted result
  std::vector<Dim> k = call.opset() < 10 ? std::vector<Dim>{Dim(call.i64("k", 0))} : call.run_dims(1, "k");
  if (k.size() != 1) return call.fail(Code::kData, "'k' is not one number");
  Expr inputs[] = {call.in(0)};
  Outputs found =
      call.ops("top_k", inputs, {{"k", k[0]}, {"axis", call.i64("axis", -1)}, {"largest", call.i64("largest", 1)}});
  for (size_t i = 0; i < 2 && i < found.size(); i++) call.out(i, found[i]);
}

constexpr NodeKind kKinds[] = {
    {"ReduceSum", build_fn<13>, "sum", fold_sum},
    {"ReduceProd", build_fn<18>, "prod", fold_prod},
    {"ReduceMax", build_fn<18>, "max", fold_largest},
    {"ReduceMin", build_fn<18>, "min", fold_least},
    {"ReduceMean", build_real, "mean"},
    {"ReduceL1", build_op, "reduce_l1"},
    {"ReduceL2", build_real, "reduce_l2"},
    {"ReduceSumSquare", build_op, "sum_square"},
    {"ReduceLogSum", build_real, "log_sum"},
    {"ReduceLogSumExp", build_real, "logsumexp"},
    {"ArgMax", build_arg, "arg_max"},
    {"ArgMin", build_arg, "arg_min"},
    {"CumSum", build_cumulative, "sum"},
    {"CumProd", build_cumulative, "prod"},
    {"TopK", build_top_k},
};

}  // namespace

std::span<const NodeKind> reduce_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
