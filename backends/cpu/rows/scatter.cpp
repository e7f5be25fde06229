// SPDX-License-Identifier: Apache-2.0
// Rows of ops that write into x, in place if it dies there: rows along an axis, rows at index tuples, single elements.
#include <algorithm>

#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/rows/checked.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

// The loop's arguments; behind them, where a sum of f32 may need it, those of the op's own `eval`. An f32 accumulator
// adds at most 512 terms (semantics.md C3), so where more updates than that may name one place, `eval` adds them in
// f64.
template <class Args>
struct alignas(16) WriterBlock {
  CheckedBlock<Args> checked;
  bool* is_crowded = nullptr;  // null: no place can have too many updates
  void* eval() { return this + 1; }
  const void* eval() const { return this + 1; }
};
template <class Args>
size_t writer_bytes(const Step& step) {
  return sizeof(WriterBlock<Args>) + eval_bytes(step);
}

template <class Args, bool (*crowds)(const Args&)>
Status run_crowd(const void* block, int64_t, int64_t) {
  const auto& it = *static_cast<const WriterBlock<Args>*>(block);
  *it.is_crowded = crowds(it.checked.args);
  return *it.is_crowded ? run_eval(it.eval(), 0, 1) : Status();
}
template <class Args, BadIndex (*loop)(const Args&, int64_t, int64_t)>
Status run_writer(const void* block, int64_t begin, int64_t end) {
  const auto& it = *static_cast<const WriterBlock<Args>*>(block);
  if (it.is_crowded && *it.is_crowded) return {};
  return run_checked<Args, loop>(&it.checked, begin, end);
}

template <class Args, BadIndex (*loop)(const Args&, int64_t, int64_t), bool (*crowds)(const Args&)>
void load_writer(const StepView& view, const Args& args, bool may_crowd, int64_t parts, double work, void* block,
                 Launch& launch) {
  auto& it = *new (block) WriterBlock<Args>{{args, &view.node, &view.plan.graph().info(view.node)}};
  if (may_crowd) {
    it.is_crowded = reinterpret_cast<bool*>(view.scratch);
    fill_eval(view, it.eval());
    launch.then(run_crowd<Args, crowds>, 1, 0.3 * work);
  }
  launch.then(run_writer<Args, loop>, parts, work);
}

template <class Args>
Row writer(Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
  auto scratch = [](const Node&, std::span<const Dims>) { return sizeof(bool); };
  return Row(op, name, refuse, encode, writer_bytes<Args>).in_place(1).scratch(scratch).may_fail();
}

// ---- rows ----

// A slice [b, m] of x is n rows; b counts the batches that have indices of their own.
void set_slices(WriteRowsArgs& args, const View& x, size_t batch_dims, size_t axis, size_t depth) {
  args.bytes = element_bytes(x.dtype);
  args.n = 1;
  for (size_t i = 0; i < x.dims.size(); i++)
    (i < batch_dims ? args.batch : i < axis ? args.mid : i < axis + depth ? args.n : args.bytes) *= x.dims[i];
}

void load_rows(const StepView& view, WriteRowsArgs& args, const View& index, const View& rows, void* block,
               Launch& launch) {
  args.x = view.in[0].data;
  args.y = view.out[0].data;
  args.rows = rows.data;
  args.index = index.data;
  args.index_is_i64 = index.dtype == DType::kI64;
  args.bounds = view.plan.lowered->options.bounds;
  if (args.mid == 0) args.mid = 1, args.bytes = 0;  // nothing to write, but indices to check
  if (args.fold)
    args.write = args.bytes == element_bytes(rows.dtype) ? element_writer(view.node.attrs.str("reduction"), rows.dtype)
                                                         : nullptr;
  else
    args.write = element_writer(args.bytes);
  cut_rows(args);
  auto written = static_cast<double>(args.batch * args.mid) * static_cast<double>(args.count);
  double copied = args.x == args.y ? 0 : static_cast<double>(args.batch * args.mid * args.n * args.bytes);
  double each = 4 + 0.05 * static_cast<double>(args.bytes);
  double work = 30 + written * each + 0.05 * copied;
  load_writer<WriteRowsArgs, write_rows, crowds_rows>(view, args, args.adds_f32 && args.count > kMaxUpdates,
                                                      write_rows_parts(args), work, block, launch);
}

std::string_view refuse_scatter(const KernelQuery& query) {
  const std::string& reduction = query.node.attrs.str("reduction");
  if (reduction == "none") return refuse_blocks(query);
  DType dtype = query.type(0).dtype;
  if (!row_fold(reduction, dtype)) return "folds complex numbers";
  if (folds_exactly(reduction, dtype)) return "";
  return reduction == "add" && dtype == DType::kF32 ? "" : "rounds once: adds f32 only";
}

bool adds_f32(const StepView& view) {
  return view.node.attrs.is("reduction", "add") && view.in[0].dtype == DType::kF32;
}
void set_fold(const StepView& view, WriteRowsArgs& args) {
  const std::string& reduction = view.node.attrs.str("reduction");
  if (reduction != "none") args.fold = row_fold(reduction, view.in[0].dtype);
  args.adds_f32 = adds_f32(view);
}

void encode_dynamic_update_slice(const StepView& view, const Caps&, void* block, Launch& launch) {
  auto axis = static_cast<size_t>(view.node.attrs.i64("axis"));
  WriteRowsArgs args;
  args.from = WriteRowsArgs::kPosition;
  args.count = view.in[1].dims[axis];
  set_slices(args, view.in[0], 0, axis, 1);
  load_rows(view, args, view.in[2], view.in[1], block, launch);
}

void encode_kv_append(const StepView& view, const Caps&, void* block, Launch& launch) {
  auto axis = static_cast<size_t>(view.node.attrs.i64("axis"));
  WriteRowsArgs args;
  args.from = WriteRowsArgs::kPosition;
  args.wraps = view.node.attrs.flag("wrap");
  args.per_batch = view.in[2].dims.size() == 1;
  args.count = view.in[1].dims[axis];
  set_slices(args, view.in[0], args.per_batch ? 1 : 0, axis, 1);
  load_rows(view, args, view.in[2], view.in[1], block, launch);
}

void encode_scatter(const StepView& view, const Caps&, void* block, Launch& launch) {
  WriteRowsArgs args;
  args.count = view.in[1].count();
  set_fold(view, args);
  set_slices(args, view.in[0], 0, static_cast<size_t>(view.node.attrs.i64("axis")), 1);
  load_rows(view, args, view.in[1], view.in[2], block, launch);
}

void encode_scatter_nd(const StepView& view, const Caps&, void* block, Launch& launch) {
  const Dims &x = view.in[0].dims, &index = view.in[1].dims;
  auto batch_dims = static_cast<size_t>(view.node.attrs.i64("batch_dims"));
  WriteRowsArgs args;
  args.from = WriteRowsArgs::kTuple;
  args.per_batch = true;
  args.depth = static_cast<int32_t>(index.back());
  args.count = 1;
  for (size_t i = batch_dims; i + 1 < index.size(); i++) args.count *= index[i];
  for (int32_t k = 0; k < args.depth; k++) args.tuple_dims[k] = x[batch_dims + static_cast<size_t>(k)];
  set_fold(view, args);
  set_slices(args, view.in[0], batch_dims, batch_dims, static_cast<size_t>(args.depth));
  load_rows(view, args, view.in[1], view.in[2], block, launch);
}

// ---- single elements ----

std::string_view refuse_elements(const KernelQuery& query) {
  DType dtype = query.type(0).dtype;
  if (is_block(dtype) || element_bytes(dtype) > 8) return "elements are larger than 8 bytes";
  return query.type(0).rank() == 0 ? "x is a scalar" : refuse_scatter(query);
}

void encode_scatter_elements(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &x = view.in[0], &index = view.in[1];
  WriteElementsArgs args;
  args.x = x.data;
  args.y = view.out[0].data;
  args.updates = view.in[2].data;
  args.index = index.data;
  args.index_is_i64 = index.dtype == DType::kI64;
  args.element = element_bytes(x.dtype);
  args.rank = static_cast<int32_t>(x.dims.size());
  args.axis = static_cast<int32_t>(view.node.attrs.i64("axis"));
  std::copy(x.dims.begin(), x.dims.end(), args.x_dims);
  std::copy(index.dims.begin(), index.dims.end(), args.dims);
  args.write = element_writer(view.node.attrs.str("reduction"), x.dtype);
  args.bounds = view.plan.lowered->options.bounds;
  bool may_crowd = adds_f32(view) && index.dims[static_cast<size_t>(args.axis)] > kMaxUpdates;
  double copied = args.x == args.y ? 0 : static_cast<double>(x.count() * args.element);
  double work = 30 + 1.5 * static_cast<double>(index.count()) + 0.05 * copied;
  load_writer<WriteElementsArgs, write_elements, crowds_elements>(view, args, may_crowd, write_elements_parts(args),
                                                                  work, block, launch);
}

}  // namespace

void add_scatter_rows(RowsByOp& by_op) {
  auto add_rows = [&](Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
    add(by_op, writer<WriteRowsArgs>(op, name, refuse, encode));
  };
  add_rows(Op::kDynamicUpdateSlice, "update_rows", refuse_blocks, encode_dynamic_update_slice);
  add_rows(Op::kKvAppend, "append_rows", refuse_blocks, encode_kv_append);
  add_rows(Op::kScatter, "scatter_rows", refuse_scatter, encode_scatter);
  add_rows(Op::kScatterNd, "scatter_rows", refuse_scatter, encode_scatter_nd);
  add(by_op,
      writer<WriteElementsArgs>(Op::kScatterElements, "scatter_elements", refuse_elements, encode_scatter_elements));
}

}  // namespace rlx::cpu
