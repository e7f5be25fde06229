// SPDX-License-Identifier: Apache-2.0
// Rows for reduce and 2-norms, over any axes, and for running folds of lines side by side.
#include "backends/cpu/kernels/reduce.h"

#include <algorithm>

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_reduce(const KernelQuery& query) {
  return can_reduce(query.type(0).dtype) ? "" : "takes f32, f64, integers and bool only";
}

// The row flushes denormals. An extreme keeps them, as it is compared with the elements that it came from.
std::string_view refuse_flushed(const KernelQuery& query) {
  if (query.type(0).dtype != DType::kF32) return "takes f32 only";
  const Attrs& attrs = query.node.attrs;
  return attrs.is("fn", "max") || attrs.is("fn", "min") ? "an extreme keeps denormals" : "";
}

constexpr std::string_view kFolds[] = {"sum", "prod", "max", "min"};  // of ReduceFn

ReduceFn fold_of(const Node& node) {
  return static_cast<ReduceFn>(std::find(std::begin(kFolds), std::end(kFolds), node.attrs.str("fn")) -
                               std::begin(kFolds));
}

void encode_cumulative(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View& x = view.in[0];
  auto axis = static_cast<size_t>(view.node.attrs.i64("axis"));
  CumulativeArgs args;
  args.x = x.data;
  args.y = view.out[0].data;
  args.dtype = x.dtype;
  args.fn = fold_of(view.node);
  args.exclusive = view.node.attrs.flag("exclusive");
  args.reverse = view.node.attrs.flag("reverse");
  for (size_t i = 0; i < x.dims.size(); i++) (i < axis ? args.outer : i == axis ? args.n : args.inner) *= x.dims[i];
  const ReduceFns& fns = caps.fns.reduce;
  double work = 50 + 0.5 * static_cast<double>(x.count());
  if (args.inner != 1) return load(block, fns.cumulate, args, work, launch);
  bool cuts = line_pieces(args.outer, args.n).count > 1;
  args.totals = view.scratch;
  if (cuts) load(block, fns.totals, args, 0.3 * work, launch);
  load_after<CumulativeArgs>(block, fns.lines, args, work, launch);
}

size_t cumulative_scratch(const Node& node, std::span<const Dims> upper) {
  int64_t n = upper[0][static_cast<size_t>(node.attrs.i64("axis"))];
  return n < 2 * kLinePiece ? 0 : kManyParts * sizeof(double);
}

void encode_reduce(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View& x = view.in[0];
  ReduceArgs args;
  args.x = x.data;
  args.y = view.out[0].data;
  args.dtype = x.dtype;
  uint32_t axes = 0;
  for (int64_t axis : view.node.attrs.i64s("axes")) axes |= 1U << axis;
  set_axes(args, x.dims, axes);
  bool is_norm = view.node.op == Op::kReduceL2;
  args.squares = args.root = is_norm;
  args.fn = is_norm ? ReduceFn::kSum : fold_of(view.node);
  double work = 50 + 0.3 * static_cast<double>(x.count());
  const Loop<ReduceArgs>& loop = caps.fns.reduce.reduce;
  ReduceArgs pieces;
  if (!cut_rows(args, pieces, view.scratch)) return load(block, loop, args, work, launch);
  load(block, loop, pieces, work, launch);
  load_after<ReduceArgs>(block, loop, args, 50, launch);
}

std::string_view refuse_norm(const KernelQuery& query) {
  return all_f32(query) ? "" : "takes f32 only";
}

size_t reduce_scratch(const Node&, std::span<const Dims> upper) {
  return partial_bytes(largest_count(upper[0]), largest_count(upper[1]));
}

}  // namespace

void add_reduce_rows(RowsByOp& by_op) {
  add(by_op,
      native<ReduceArgs, ReduceArgs>(Op::kReduce, "reduce_f32", refuse_flushed, encode_reduce).scratch(reduce_scratch));
  add(by_op,
      native<ReduceArgs, ReduceArgs>(Op::kReduceL2, "norm_f32", refuse_norm, encode_reduce).scratch(reduce_scratch));
  add(by_op,
      loops<ReduceArgs, ReduceArgs>(Op::kReduce, "reduce", refuse_reduce, encode_reduce).scratch(reduce_scratch));
  add(by_op, loops<CumulativeArgs, CumulativeArgs>(Op::kCumulative, "cumulative", refuse_reduce, encode_cumulative)
                 .scratch(cumulative_scratch)
                 .in_place(1));
}

}  // namespace rlx::cpu
