// SPDX-License-Identifier: Apache-2.0
// The row for reduce, over any axes.
#include "backends/cpu/kernels/reduce.h"

#include <algorithm>

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_reduce(const KernelQuery& query) {
  return can_reduce(query.type(0).dtype) ? "" : "takes f32, f64, integers and bool only";
}

std::string_view refuse_all_but_f32(const KernelQuery& query) {
  return query.type(0).dtype == DType::kF32 ? "" : "takes f32 only";
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
  static constexpr std::string_view kNames[] = {"sum", "prod", "max", "min"};
  args.fn = static_cast<ReduceFn>(std::find(std::begin(kNames), std::end(kNames), view.node.attrs.str("fn")) - kNames);
  load(block, caps.fns.reduce.reduce, args, 50 + 0.3 * static_cast<double>(x.count()), launch);
}

}  // namespace

void add_reduce_rows(RowsByOp& by_op) {
  add(by_op, native<ReduceArgs>(Op::kReduce, "reduce_f32", refuse_all_but_f32, encode_reduce));
  add(by_op,
      Row(Op::kReduce, "reduce", refuse_reduce, encode_reduce, run_loaded<ReduceArgs>, loaded_bytes<ReduceArgs>));
}

}  // namespace rlx::cpu
