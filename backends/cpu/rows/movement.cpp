// SPDX-License-Identifier: Apache-2.0
// Rows that move elements: copies of views, gather, rows written into an axis, concat.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/pad.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

void encode_copy(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &from = view.in[0], &to = view.out[0];
  CopyArgs args;
  args.from = from.data;
  args.to = to.data;
  if (is_block(from.dtype)) {  // never a view, so its bytes are contiguous
    args.rank = 1;
    args.dims[0] = byte_size(from.dtype, from.count()).value_or(0);
    args.strides[0] = 1;
  } else {
    args.element = element_bytes(from.dtype);
    args.rank = static_cast<int32_t>(from.dims.size());
    for (size_t i = 0; i < from.dims.size(); i++) {
      args.dims[i] = from.dims[i];
      args.strides[i] = from.strides[i] * args.element;
    }
  }
  collapse_dims(args);
  load(block, copy_loop(), args, 30 + 0.4 * static_cast<double>(to.count()), launch);
}

// A slice that is not a view, because it runs backwards.
void encode_slice(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &from = view.in[0], &to = view.out[0];
  const Attrs& attrs = view.node.attrs;
  CopyArgs args;
  args.from = from.data;
  args.to = to.data;
  args.element = element_bytes(from.dtype);
  args.rank = static_cast<int32_t>(from.dims.size());
  for (size_t i = 0; i < from.dims.size(); i++) {
    args.dims[i] = to.dims[i];
    args.strides[i] = from.strides[i] * args.element;
  }
  for (size_t i = 0; i < attrs.dims("starts").size(); i++) {
    auto axis = static_cast<size_t>(attrs.i64s("axes")[i]);
    if (to.dims[axis] == 0) continue;  // then nothing is read
    int64_t n = from.dims[axis], start = size_of(view, attrs.dims("starts")[i]), step = attrs.i64s("steps")[i];
    if (start < 0) start += n;
    args.from += std::clamp<int64_t>(start, 0, n - 1) * args.strides[axis];
    args.strides[axis] *= to.dims[axis] > 1 ? step : 0;
  }
  collapse_dims(args);
  load(block, copy_loop(), args, 30 + 0.4 * static_cast<double>(to.count()), launch);
}

std::string_view refuse_slice(const KernelQuery& query) {
  return is_block(query.type(0).dtype) ? "takes no blocks" : "";
}

// ---- pad ----

std::string_view refuse_pad(const KernelQuery& query) {
  const std::vector<int64_t>& between = query.node.attrs.i64s("interior");
  return std::all_of(between.begin(), between.end(), [](int64_t i) { return i == 0; }) ? "" : "spreads elements";
}

void encode_pad(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &x = view.in[0], &y = view.out[0];
  static constexpr std::string_view kModes[] = {"constant", "edge", "reflect", "wrap"};  // of PadMode
  PadArgs args;
  args.mode = static_cast<PadMode>(std::find(std::begin(kModes), std::end(kModes), view.node.attrs.str("mode")) -
                                   std::begin(kModes));
  args.from = x.data;
  args.to = y.data;
  if (view.in.size() > 1) args.value = data_or_null<const std::byte>(view.in[1]);
  args.element = element_bytes(x.dtype);
  args.rank = static_cast<int32_t>(x.dims.size());
  std::copy(x.dims.begin(), x.dims.end(), args.from_dims);
  std::copy(y.dims.begin(), y.dims.end(), args.to_dims);
  for (size_t i = 0; i < x.dims.size(); i++) args.lo[i] = size_of(view, view.node.attrs.dims("lo")[i]);
  load(block, pad_loop(), args, 50 + 0.4 * static_cast<double>(y.count()), launch);
}

// ---- loops that check indices ----

// What the message for a bad index needs stands beside the arguments.
template <class Args>
struct CheckedBlock {
  Args args;
  const Node* node;
  const OpInfo* op;
};

template <class Args, BadIndex (*loop)(const Args&, int64_t, int64_t)>
Status run_checked(const void* block, int64_t begin, int64_t end) {
  const auto& it = *static_cast<const CheckedBlock<Args>*>(block);
  BadIndex bad = loop(it.args, begin, end);
  if (bad.n < 0) return {};
  const std::string& name = it.node->name;
  return Status(Code::kRange, format("{}{}: index {} at position {} is outside a size of {}", it.op->name,
                                     name.empty() ? "" : format(" '{}'", name), bad.value, bad.position, bad.n))
      .with("op", it.op->name)
      .with("value", it.node->name);
}

template <class Args, BadIndex (*loop)(const Args&, int64_t, int64_t)>
void load_checked(const StepView& view, const Args& args, int64_t parts, double work, void* block, Launch& launch) {
  new (block) CheckedBlock<Args>{args, &view.node, &view.plan.graph().info(view.node)};
  launch.then(run_checked<Args, loop>, parts, work);
}

// A loop along one axis of n elements tells only the position.
template <class Args, int64_t (*loop)(const Args&, int64_t, int64_t)>
BadIndex along_axis(const Args& args, int64_t begin, int64_t end) {
  int64_t position = loop(args, begin, end);
  if (position < 0) return kAllGood;
  int64_t value = args.index_is_i64 ? static_cast<const int64_t*>(args.index)[position]
                                    : static_cast<const int32_t*>(args.index)[position];
  return {value, position, args.n};
}

std::string_view refuse_blocks(const KernelQuery& query) {
  return is_block(query.type(0).dtype) ? "rows are block-quantised" : "";
}

// ---- gather ----

void encode_gather(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &x = view.in[0], &index = view.in[1];
  auto at = static_cast<size_t>(view.node.attrs.i64("axis"));
  GatherArgs args;
  args.from = x.data;
  args.to = view.out[0].data;
  args.index = index.data;
  args.index_is_i64 = index.dtype == DType::kI64;
  args.n = x.dims[at];
  args.count = index.count();
  args.bytes = element_bytes(x.dtype);
  for (size_t i = 0; i < at; i++) args.outer *= x.dims[i];
  for (size_t i = at + 1; i < x.dims.size(); i++) args.bytes *= x.dims[i];
  args.bounds = view.plan.lowered->options.bounds;
  if (args.outer == 0) args.outer = 1, args.bytes = 0;  // nothing to copy, but indices to check
  double rows = static_cast<double>(args.outer * args.count);
  double work = 30 + rows * (4 + 0.05 * static_cast<double>(args.bytes));
  load_checked<GatherArgs, along_axis<GatherArgs, gather_rows>>(view, args, gather_parts(args), work, block, launch);
}

std::string_view refuse_gather_elements(const KernelQuery& query) {
  DType dtype = query.type(0).dtype;
  if (is_block(dtype) || element_bytes(dtype) > 8) return "elements are larger than 8 bytes";
  return query.type(0).rank() == 0 ? "x is a scalar" : "";
}

void encode_gather_elements(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &x = view.in[0], &index = view.in[1];
  GatherElementsArgs args;
  args.from = x.data;
  args.to = view.out[0].data;
  args.index = index.data;
  args.index_is_i64 = index.dtype == DType::kI64;
  args.element = element_bytes(x.dtype);
  args.rank = static_cast<int32_t>(x.dims.size());
  args.axis = static_cast<int32_t>(view.node.attrs.i64("axis"));
  args.n = x.dims[static_cast<size_t>(args.axis)];
  std::copy(index.dims.begin(), index.dims.end(), args.dims);
  std::copy(x.strides.begin(), x.strides.end(), args.strides);
  args.bounds = view.plan.lowered->options.bounds;
  load_checked<GatherElementsArgs, along_axis<GatherElementsArgs, gather_elements>>(
      view, args, gather_elements_parts(args), 30 + static_cast<double>(index.count()), block, launch);
}

void encode_gather_nd(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &x = view.in[0], &index = view.in[1];
  auto batch_dims = static_cast<size_t>(view.node.attrs.i64("batch_dims"));
  auto depth = static_cast<size_t>(index.dims.back());
  GatherTuplesArgs args;
  args.from = x.data;
  args.to = view.out[0].data;
  args.index = index.data;
  args.index_is_i64 = index.dtype == DType::kI64;
  args.bounds = view.plan.lowered->options.bounds;
  args.bytes = element_bytes(x.dtype);
  for (size_t i = 0; i < x.dims.size(); i++)
    (i < batch_dims ? args.batch : i < batch_dims + depth ? args.n : args.bytes) *= x.dims[i];
  for (size_t i = batch_dims; i + 1 < index.dims.size(); i++) args.count *= index.dims[i];
  std::copy_n(x.dims.begin() + static_cast<ptrdiff_t>(batch_dims), depth, args.dims);
  args.depth = static_cast<int32_t>(depth);
  double each = 2 + static_cast<double>(depth) + 0.05 * static_cast<double>(args.bytes);
  double work = 30 + each * static_cast<double>(args.batch * args.count);
  load_checked<GatherTuplesArgs, gather_tuples>(view, args, gather_tuples_parts(args), work, block, launch);
}

// ---- rows written into an axis: in place if x dies here ----

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
  cut_rows(args);
  auto written = static_cast<double>(args.batch * args.mid) * static_cast<double>(args.count);
  double copied = args.x == args.y ? 0 : static_cast<double>(args.batch * args.mid * args.n * args.bytes);
  double each = 4 + 0.05 * static_cast<double>(args.bytes);
  double work = 30 + written * each + 0.05 * copied;
  load_checked<WriteRowsArgs, write_rows>(view, args, write_rows_parts(args), work, block, launch);
}

// An f32 accumulator adds at most 512 terms (semantics.md C3): the element of x, and all updates if they name one
// place.
constexpr int64_t kMaxUpdates = 511;

bool has_few_updates(const KernelQuery& query) {
  int64_t updates = 1;
  for (const Dim& dim : query.type(1).dims) {
    if (!dim.is_literal() || dim.literal() > kMaxUpdates) return false;
    updates *= dim.literal();
    if (updates > kMaxUpdates) return false;
  }
  return true;
}

std::string_view refuse_scatter(const KernelQuery& query) {
  const std::string& reduction = query.node.attrs.str("reduction");
  if (reduction == "none") return refuse_blocks(query);
  DType dtype = query.type(0).dtype;
  if (!row_fold(reduction, dtype)) return "folds complex numbers";
  if (folds_exactly(reduction, dtype)) return "";
  return reduction == "add" && dtype == DType::kF32 && has_few_updates(query)
             ? ""
             : "rounds once: adds up to 511 updates of f32 only";
}

void set_fold(const StepView& view, WriteRowsArgs& args) {
  const std::string& reduction = view.node.attrs.str("reduction");
  if (reduction != "none") args.fold = row_fold(reduction, view.in[0].dtype);
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

// ---- concat: piece by piece, each a run of bytes per outer index ----

struct ConcatPiece {
  const std::byte* from;
  int64_t bytes, at;  // bytes of one outer index, and their place in a row of the result
};
struct ConcatBlock {
  std::byte* to;
  int64_t outer, row_bytes;
  size_t count;
  ConcatPiece* pieces() { return reinterpret_cast<ConcatPiece*>(this + 1); }
  const ConcatPiece* pieces() const { return reinterpret_cast<const ConcatPiece*>(this + 1); }
};

size_t concat_bytes(const Step& step) {
  return sizeof(ConcatBlock) + step.in.size() * sizeof(ConcatPiece);
}

// Pieces of one size that is known here, so that no copy is a call.
template <size_t kBytes>
void concat_short(const ConcatBlock& it, int64_t begin, int64_t end) {
  for (size_t i = 0; i < it.count; i++) {
    const std::byte* from = it.pieces()[i].from;
    std::byte* to = it.to + it.pieces()[i].at;
    for (int64_t row = begin; row < end; row++)
      std::memcpy(to + row * it.row_bytes, from + row * static_cast<int64_t>(kBytes), kBytes);
  }
}

// Rows stay in the cache until all their pieces are there.
constexpr int64_t kConcatRows = 256;
bool concat_alike(const ConcatBlock& it, int64_t begin, int64_t end) {
  const int64_t bytes = it.count ? it.pieces()[0].bytes : 0;
  for (size_t i = 0; i < it.count; i++)
    if (it.pieces()[i].bytes != bytes) return false;
  auto fn = bytes == 1    ? concat_short<1>
            : bytes == 2  ? concat_short<2>
            : bytes == 4  ? concat_short<4>
            : bytes == 8  ? concat_short<8>
            : bytes == 16 ? concat_short<16>
                          : nullptr;
  if (!fn) return false;
  for (int64_t row = begin; row < end; row += kConcatRows) fn(it, row, std::min(end, row + kConcatRows));
  return true;
}

Status run_concat(const void* block, int64_t begin, int64_t end) {
  const auto& it = *static_cast<const ConcatBlock*>(block);
  if (concat_alike(it, begin, end)) return {};
  for (int64_t row = begin; row < end; row++)
    for (size_t i = 0; i < it.count; i++) {
      const ConcatPiece& piece = it.pieces()[i];
      if (piece.bytes)
        std::memcpy(it.to + row * it.row_bytes + piece.at, piece.from + row * piece.bytes,
                    static_cast<size_t>(piece.bytes));
    }
  return {};
}

void encode_concat(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View& out = view.out[0];
  auto at = static_cast<size_t>(view.node.attrs.i64("axis"));
  int64_t outer = 1, inner = element_bytes(out.dtype);
  for (size_t i = 0; i < at; i++) outer *= out.dims[i];
  for (size_t i = at + 1; i < out.dims.size(); i++) inner *= out.dims[i];
  auto& it = *new (block) ConcatBlock{out.data, outer, out.dims[at] * inner, view.in.size()};
  int64_t place = 0;
  for (size_t i = 0; i < view.in.size(); i++) {
    int64_t bytes = view.in[i].dims[at] * inner;
    it.pieces()[i] = {view.in[i].data, bytes, place};
    place += bytes;
  }
  launch.then(run_concat, outer, 30 + 0.1 * static_cast<double>(outer * it.row_bytes));
}

}  // namespace

constinit const CpuKernel kCopyKernel = loops<CopyArgs>(Op::kReshape, "copy", nullptr, encode_copy).strided(1).kernel();

void add_movement_rows(RowsByOp& by_op) {
  add(by_op, with_block<CheckedBlock<GatherArgs>>(Op::kGather, "gather_rows", refuse_blocks, encode_gather));
  add(by_op, with_block<CheckedBlock<GatherElementsArgs>>(Op::kGatherElements, "gather_elements",
                                                          refuse_gather_elements, encode_gather_elements));
  add(by_op,
      with_block<CheckedBlock<GatherTuplesArgs>>(Op::kGatherNd, "gather_tuples", refuse_blocks, encode_gather_nd));
  add(by_op, loops<CopyArgs>(Op::kSlice, "slice", refuse_slice, encode_slice).strided(1));
  add(by_op, loops<PadArgs>(Op::kPad, "pad", refuse_pad, encode_pad));
  add(by_op, Row(Op::kConcat, "concat", nullptr, encode_concat, concat_bytes));
  auto add_writer = [&](Op op, std::string_view name, RefuseFn refuse, EncodeFn encode) {
    add(by_op, with_block<CheckedBlock<WriteRowsArgs>>(op, name, refuse, encode).in_place(1));
  };
  add_writer(Op::kDynamicUpdateSlice, "update_rows", refuse_blocks, encode_dynamic_update_slice);
  add_writer(Op::kKvAppend, "append_rows", refuse_blocks, encode_kv_append);
  add_writer(Op::kScatter, "scatter_rows", refuse_scatter, encode_scatter);
  add_writer(Op::kScatterNd, "scatter_rows", refuse_scatter, encode_scatter_nd);
}

}  // namespace rlx::cpu
