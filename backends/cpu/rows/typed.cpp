// SPDX-License-Identifier: Apache-2.0
// Rows for single elementwise ops in the type of their operands: integers, f64, bools, and casts among them.
#include "backends/cpu/kernels/typed.h"

#include <algorithm>

#include "backends/cpu/rows/native.h"
#include "backends/cpu/rows/region_program.h"

namespace rlx::cpu {

namespace {

constexpr Op kTypedOps[] = {Op::kAdd,   Op::kSub,  Op::kMul,   Op::kDiv,    Op::kRem,   Op::kMax,    Op::kMin,
                            Op::kNeg,   Op::kAbs,  Op::kSqrt,  Op::kBitAnd, Op::kBitOr, Op::kBitXor, Op::kBitNot,
                            Op::kEq,    Op::kNe,   Op::kLt,    Op::kLe,     Op::kGt,    Op::kGe,     Op::kIsNan,
                            Op::kWhere, Op::kCast, Op::kFloor, Op::kRound,  Op::kShl,   Op::kShr};

std::string_view refuse_typed(const KernelQuery& query) {
  DType from = query.type(query.node.in.size() - 1).dtype, to = query.node.out[0].dtype;
  return typed_fns(Isa::kBaseline).find(query.node.op, from, to) ? "" : "no loop over these dtypes";
}

// Regions compute these too, but with four bytes for each bool where this has one.
std::string_view refuse_bytes(const KernelQuery& query) {
  if (query.node.out[0].dtype != DType::kBool && query.node.op != Op::kWhere) return "makes or reads no truth values";
  RegionProgram program;
  std::string_view why = emit_region(query.graph, query.node, program);
  return why.empty() ? refuse_typed(query) : why;
}

void encode_typed(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View& y = view.out[0];
  TypedArgs args;
  args.fn = caps.fns.typed.find(view.node.op, view.in.back().dtype, y.dtype);
  args.y = y.data;
  args.element = element_bytes(y.dtype);
  args.rank = static_cast<int32_t>(y.dims.size());
  std::copy(y.dims.begin(), y.dims.end(), args.dims);
  for (const View& from : view.in) {
    TypedInput& input = args.inputs[args.input_count++];
    input.data = from.data;
    input.element = element_bytes(from.dtype);
    set_strides(from, y.dims, input.strides);
  }
  collapse_dims(args);
  load(block, caps.fns.typed.loop, args, 50 + 0.3 * static_cast<double>(y.count()), launch);
}

// No op here may treat subnormal numbers as 0.
Row typed_row(Op op, RefuseFn refuse) {
  return loops<TypedArgs>(op, "typed", refuse, encode_typed)
      .strided(~0U)
      .in_place(~0U);  // a tile of every input is read before that of the output is written
}

}  // namespace

void add_typed_bytes_rows(RowsByOp& by_op) {
  for (Op op : kTypedOps) add(by_op, typed_row(op, refuse_bytes));
}
void add_typed_rows(RowsByOp& by_op) {
  for (Op op : kTypedOps) add(by_op, typed_row(op, refuse_typed).alone());
}

}  // namespace rlx::cpu
