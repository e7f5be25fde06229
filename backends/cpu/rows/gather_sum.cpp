// SPDX-License-Identifier: Apache-2.0
// Rows for what resizing is made of: gather_sum over f32, and gather_plane over elements of 4 bytes.
#include "backends/cpu/kernels/gather_sum.h"

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_gather_sum(const KernelQuery& query) {
  DType index = query.type(1).dtype;
  if (query.type(0).dtype != DType::kF32 || query.type(2).dtype != DType::kF32) return "takes f32 only";
  if (index != DType::kI32 && index != DType::kI64) return "takes indices of i32 or i64";
  const Dim& n = query.type(0).dims[static_cast<size_t>(query.node.attrs.i64("axis"))];
  return n.is(0) || (n.is_literal() && n.literal() > INT32_MAX) ? "the axis is empty, or too long" : "";
}

void encode_gather_sum(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &x = view.in[0], &index = view.in[1];
  auto axis = static_cast<size_t>(view.node.attrs.i64("axis"));
  GatherSumArgs args;
  args.x = x.as<float>();
  args.index = index.data;
  args.index_is_i64 = index.dtype == DType::kI64;
  args.weight = view.in[2].as<float>();
  args.y = view.out[0].as<float>();
  for (size_t i = 0; i < x.dims.size(); i++) (i < axis ? args.outer : i == axis ? args.n : args.inner) *= x.dims[i];
  args.count = index.dims[0];
  args.taps = args.n == 0 ? 0 : index.dims[1];
  double terms = static_cast<double>(view.out[0].count()) * static_cast<double>(args.taps);
  load(block, caps.fns.gather_sum.sum, args, 50 + 0.3 * terms, launch);
}

bool is_short(const Dim& n) {
  return !n.is(0) && (!n.is_literal() || n.literal() <= INT32_MAX);
}
std::string_view refuse_gather_plane(const KernelQuery& query) {
  const auto& x = query.type(0);
  auto axis = static_cast<size_t>(query.node.attrs.i64("axis"));
  if (element_bytes(x.dtype) != 4) return "takes elements of 4 bytes only";
  if (axis + 2 != x.rank()) return "not along the last two axes";
  return is_short(x.dims[axis]) && is_short(x.dims[axis + 1]) ? "" : "an axis is empty, or too long";
}

void encode_gather_plane(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View& x = view.in[0];
  size_t rank = x.dims.size();
  GatherPlaneArgs args;
  args.x = x.as<float>();
  args.y = view.out[0].as<float>();
  for (size_t i = 0; i + 2 < rank; i++) args.outer *= x.dims[i];
  for (size_t i : {1, 2}) {
    const View& index = view.in[i];
    (i == 1 ? args.rows : args.columns) =
        GatherPlaneArgs::Axis{index.data, index.dtype == DType::kI64, x.dims[rank - 3 + i], index.dims[0]};
  }
  if (args.rows.n == 0 || args.columns.n == 0 || args.rows.count == 0) args.columns.count = 0;
  load(block, caps.fns.gather_sum.plane, args, 50 + 0.1 * static_cast<double>(view.out[0].count()), launch);
}

}  // namespace

void add_gather_sum_rows(RowsByOp& by_op) {
  add(by_op, native<GatherSumArgs>(Op::kGatherSum, "gather_sum_f32", refuse_gather_sum, encode_gather_sum));
  add(by_op, loops<GatherPlaneArgs>(Op::kGatherPlane, "gather_plane", refuse_gather_plane, encode_gather_plane));
}

}  // namespace rlx::cpu
