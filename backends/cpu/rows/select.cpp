// SPDX-License-Identifier: Apache-2.0
// Rows for the position of an extreme, for the first k in order, and for all in order.
#include "backends/cpu/kernels/select.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/kernels/sort.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_extreme(const KernelQuery& query) {
  return can_select(query.type(0).dtype) ? "" : "takes floats and common integers only";
}

// A k that only a run knows may be more than the kernel for few takes: then the first k are sorted, along the last
// axis.
std::string_view refuse_top_k(const KernelQuery& query) {
  const Dim& k = query.node.attrs.dim("k");
  const ValueType& x = query.type(0);
  if (std::string_view why = refuse_extreme(query); !why.empty()) return why;
  if (query.graph.range(k).hi <= most_selected(x.dtype)) return "";
  if (k.is_literal()) return "k is too large";
  auto axis = static_cast<size_t>(query.node.attrs.i64("axis"));
  if (axis + 1 < x.rank()) return "k may be too large, and the axis is not the last";
  return k == x.dims[axis] ? "selects all" : "";  // a sort, which cuts a long line for many threads
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

void load_lines(const StepView& view, SelectArgs& args, double work, void* block, Launch& launch) {
  SelectArgs pieces;
  if (!cut_lines(args, pieces, view.scratch)) return load(block, select_loop(), args, work, launch);
  load(block, select_loop(), pieces, work, launch);
  load_after<SelectArgs>(block, select_loop(), args, 50, launch);
}

size_t select_scratch(const Node& node, std::span<const Dims> upper) {
  if (upper[0].empty()) return 0;
  auto axis = static_cast<size_t>(node.attrs.i64("axis"));
  int64_t k = node.op == Op::kTopK ? std::min(upper[1][axis], most_selected(node.out[0].dtype)) : 1;
  return selected_bytes(static_cast<double>(upper[0][axis]), k);
}

void encode_extreme(const StepView& view, const Caps&, void* block, Launch& launch) {
  SelectArgs args = lines_of(view, view.out[0]);
  args.largest = view.node.op == Op::kArgMax;
  args.last = view.node.attrs.flag("last");
  args.nan_wins = true;
  load_lines(view, args, 50 + static_cast<double>(view.in[0].count()), block, launch);
}

void load_sort_of_first(const SelectArgs& found, void* block, Launch& launch) {
  static_assert(kLoadedBytes<SortArgs> <= kLoadedBytes<SelectArgs, SelectArgs>);
  SortArgs args;
  args.x = found.x, args.dtype = found.dtype, args.descending = found.largest;
  args.values = found.values, args.indices = found.indices, args.wide_indices = found.wide_indices;
  args.outer = found.outer, args.n = found.n, args.k = found.k;
  auto lines = static_cast<double>(args.outer), n = static_cast<double>(args.n), k = static_cast<double>(args.k);
  load(block, sort_first_loop(), args, 50 + lines * (5 * n + 4 * k * (1 + std::log2(k))), launch);
}

void encode_top_k(const StepView& view, const Caps&, void* block, Launch& launch) {
  SelectArgs args = lines_of(view, view.out[1]);
  args.values = view.out[0].data;
  args.k = size_of(view, view.node.attrs.dim("k"));
  args.largest = view.node.attrs.flag("largest");
  if (args.k > most_selected(args.dtype)) return load_sort_of_first(args, block, launch);
  load_lines(view, args, 50 + 2 * static_cast<double>(view.in[0].count()), block, launch);
}

std::string_view refuse_sort(const KernelQuery& query) {
  if (!can_sort(query.type(0).dtype)) return "takes floats of 16 bits and more, common integers and bools only";
  auto last = static_cast<int64_t>(query.type(0).rank()) - 1;
  return query.node.attrs.i64("axis") == last ? "" : "not over the last axis";
}

size_t sort_scratch(const Node&, std::span<const Dims> upper) {
  return sort_bytes(upper[0].empty() ? 1 : static_cast<double>(upper[0][upper[0].size() - 1]));
}

void encode_sort(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View& x = view.in[0];
  SortArgs args;
  args.x = x.data;
  args.dtype = x.dtype;
  args.values = data_or_null<void>(view.out[0]);
  args.indices = view.out[1].data;
  args.wide_indices = view.out[1].dtype == DType::kI64;
  args.descending = view.node.attrs.flag("descending");
  for (size_t i = 0; i < x.dims.size(); i++) (i + 1 < x.dims.size() ? args.outer : args.n) *= x.dims[i];
  args.pieces = pieces_of_sort(args.outer, args.n);
  args.counts = reinterpret_cast<int64_t*>(view.scratch);
  auto count = static_cast<double>(x.count());
  auto pieces = static_cast<double>(args.pieces.count);
  double work = 50 + 4 * count * (1 + std::log2(std::max(1.0, static_cast<double>(args.n) / pieces)));
  if (args.pieces.count == 1) return load(block, sort_loop(), args, work, launch);
  load(block, sort_count_loop(), args, 8 * count, launch);
  load_after<SortArgs>(block, sort_spread_loop(), args, 12 * count, launch);
  load_after<SortArgs, SortArgs>(block, sort_loop(), args, work, launch);
}

// Not `native`: comparisons must distinguish denormal numbers.
Row select_row(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
  return loops<SelectArgs, SelectArgs>(op, name, refuse, encode).scratch(select_scratch);
}

}  // namespace

void add_select_rows(RowsByOp& by_op) {
  add(by_op, select_row(Op::kArgMax, "arg_max", refuse_extreme, encode_extreme));
  add(by_op, select_row(Op::kArgMin, "arg_min", refuse_extreme, encode_extreme));
  add(by_op, select_row(Op::kTopK, "top_k", refuse_top_k, encode_top_k));
  add(by_op, loops<SortArgs, SortArgs, SortArgs>(Op::kSort, "sort", refuse_sort, encode_sort)
                 .scratch(sort_scratch)
                 .optional_outputs(1));
}

}  // namespace rlx::cpu
