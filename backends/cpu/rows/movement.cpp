// SPDX-License-Identifier: Apache-2.0
// Rows that move elements: copies of views, pad, gather, concat.
#include <algorithm>
#include <cstring>

#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/kernels/pad.h"
#include "backends/cpu/rows/checked.h"
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
  collapse_axes(args);
  load(block, pad_loop(), args, 50 + 0.4 * static_cast<double>(y.count()), launch);
}

// ---- gather ----

// A loop along one axis of n elements tells only the position.
template <class Args, int64_t (*loop)(const Args&, int64_t, int64_t)>
BadIndex along_axis(const Args& args, int64_t begin, int64_t end) {
  int64_t position = loop(args, begin, end);
  if (position < 0) return kAllGood;
  int64_t value = args.index_is_i64 ? static_cast<const int64_t*>(args.index)[position]
                                    : static_cast<const int32_t*>(args.index)[position];
  return {value, position, args.n};
}

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

// ---- concat: piece by piece, each a run of bytes per outer index; long rows are cut into parts ----

struct ConcatPiece {
  const std::byte* from;
  int64_t bytes, at;  // bytes of one outer index, and their place in a row of the result
};
struct ConcatBlock {
  std::byte* to;
  int64_t outer, row_bytes;
  size_t count;
  int64_t cuts;  // parts of a row
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

// What a part of a long row has of each piece.
constexpr int64_t kConcatPart = 1 << 16;  // bytes
void concat_cut(const ConcatBlock& it, int64_t part) {
  int64_t row = part / it.cuts, first = part % it.cuts * kConcatPart,
          last = std::min(it.row_bytes, first + kConcatPart);
  for (size_t i = 0; i < it.count; i++) {
    const ConcatPiece& piece = it.pieces()[i];
    int64_t from = std::max(first, piece.at), past = std::min(last, piece.at + piece.bytes);
    if (from < past)
      std::memcpy(it.to + row * it.row_bytes + from, piece.from + row * piece.bytes + from - piece.at,
                  static_cast<size_t>(past - from));
  }
}

Status run_concat(const void* block, int64_t begin, int64_t end) {
  const auto& it = *static_cast<const ConcatBlock*>(block);
  if (it.cuts > 1) {
    for (int64_t part = begin; part < end; part++) concat_cut(it, part);
    return {};
  }
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
  int64_t row_bytes = out.dims[at] * inner, cuts = std::max<int64_t>(1, ceil_div(row_bytes, kConcatPart));
  auto& it = *new (block) ConcatBlock{out.data, outer, row_bytes, view.in.size(), cuts};
  int64_t place = 0;
  for (size_t i = 0; i < view.in.size(); i++) {
    int64_t bytes = view.in[i].dims[at] * inner;
    it.pieces()[i] = {view.in[i].data, bytes, place};
    place += bytes;
  }
  launch.then(run_concat, outer * cuts, 30 + 0.1 * static_cast<double>(outer * it.row_bytes));
}

}  // namespace

constinit const CpuKernel kCopyKernel = loops<CopyArgs>(Op::kReshape, "copy", nullptr, encode_copy).strided(1).kernel();

void add_movement_rows(RowsByOp& by_op) {
  add(by_op, with_block<CheckedBlock<GatherArgs>>(Op::kGather, "gather_rows", refuse_blocks, encode_gather).may_fail());
  add(by_op, with_block<CheckedBlock<GatherElementsArgs>>(Op::kGatherElements, "gather_elements",
                                                          refuse_gather_elements, encode_gather_elements)
                 .may_fail());
  add(by_op, with_block<CheckedBlock<GatherTuplesArgs>>(Op::kGatherNd, "gather_tuples", refuse_blocks, encode_gather_nd)
                 .may_fail());
  add(by_op, loops<CopyArgs>(Op::kSlice, "slice", refuse_slice, encode_slice).strided(1));
  add(by_op, loops<PadArgs>(Op::kPad, "pad", refuse_pad, encode_pad));
  add(by_op, Row(Op::kConcat, "concat", nullptr, encode_concat, concat_bytes));
}

}  // namespace rlx::cpu
