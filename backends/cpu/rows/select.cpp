// SPDX-License-Identifier: Apache-2.0
// Rows for the position of an extreme, and for the first k in order.
#include "backends/cpu/kernels/select.h"

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_extreme(const KernelQuery& query) {
  return can_select(query.type(0).dtype) ? "" : "takes f32, f64 and common integers only";
}

std::string_view refuse_top_k(const KernelQuery& query) {
  const Dim& k = query.node.attrs.dim("k");
  if (!k.is_literal() || k.literal() > kMostSelected) return "takes k up to 128 only";
  return refuse_extreme(query);
}

SelectArgs lines_of(const StepView& view, const View& indices) {
  const View& x = view.in[0];
  auto axis = static_cast<size_t>(view.node.attrs.i64("axis"));
  SelectArgs args;
  args.x = x.data;
  args.dtype = x.dtype;
  args.indices = indices.data;
  args.wide_indices = indices.dtype == DType::kI64;
  for (size_t i = 0; i < x.dims.size(); i++) (i < axis ? args.outer : i == axis ? args.n : args.inner) *= x.dims[i];
  return args;
}

void encode_extreme(const StepView& view, const Caps&, void* block, Launch& launch) {
  SelectArgs args = lines_of(view, view.out[0]);
  args.largest = view.node.op == Op::kArgMax;
  args.last = view.node.attrs.flag("last");
  args.nan_wins = true;
  load(block, select_loop(), args, 50 + static_cast<double>(view.in[0].count()), launch);
}

void encode_top_k(const StepView& view, const Caps&, void* block, Launch& launch) {
  SelectArgs args = lines_of(view, view.out[1]);
  args.values = view.out[0].data;
  args.k = view.node.attrs.dim("k").literal();
  args.largest = view.node.attrs.flag("largest");
  load(block, select_loop(), args, 50 + 2 * static_cast<double>(view.in[0].count()), launch);
}

// Denormals are kept, because comparisons must distinguish them.
Row select_row(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
  return loops<SelectArgs>(op, name, refuse, encode);
}

}  // namespace

void add_select_rows(RowsByOp& by_op) {
  add(by_op, select_row(Op::kArgMax, "arg_max", refuse_extreme, encode_extreme));
  add(by_op, select_row(Op::kArgMin, "arg_min", refuse_extreme, encode_extreme));
  add(by_op, select_row(Op::kTopK, "top_k", refuse_top_k, encode_top_k));
}

}  // namespace rlx::cpu
