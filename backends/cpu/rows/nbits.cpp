// SPDX-License-Identifier: Apache-2.0
// The row for products with weights of few bits, which stay packed in memory. Halves run as f32 (the pass `widen`).
#include "backends/cpu/gemm/nbits.h"

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_nbits(const KernelQuery& query) {
  DType zero = query.has(3) ? query.type(3).dtype : DType::kF32;
  bool are_f32 = query.type(0).dtype == DType::kF32 && query.type(2).dtype == DType::kF32 &&
                 (!query.has(4) || query.type(4).dtype == DType::kF32);
  if (!are_f32 || (zero != DType::kF32 && zero != DType::kU8)) return "takes f32, and zero points of f32 or u8";
  const Dim& width = query.type(0).dims.back();
  Dim held = query.type(1).dims[1] * Dim(query.node.attrs.i64("block"));
  bool fits =
      width.is_literal() && held.is_literal() && held.literal() - width.literal() < query.node.attrs.i64("block");
  return fits ? "" : "takes a known number of terms, and no blocks beyond them";
}

void encode_nbits(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  NbitsProductArgs args;
  args.x = view.in[0].as<const float>();
  args.packed = view.in[1].as<const uint8_t>();
  args.scale = view.in[2].as<const float>();
  if (view.in[3].dtype == DType::kU8)
    args.packed_zero = data_or_null<const uint8_t>(view.in[3]);
  else
    args.zero = data_or_null<const float>(view.in[3]);
  args.bias = data_or_null<const float>(view.in[4]);
  args.y = view.out[0].as<float>();
  args.k = view.in[0].dims.back();
  args.n = view.in[1].dims[0];
  args.m = 1;
  for (size_t i = 0; i + 1 < view.in[0].dims.size(); i++) args.m *= view.in[0].dims[i];
  args.block = view.node.attrs.i64("block");
  args.bits = static_cast<int>(view.node.attrs.i64("bits"));
  double weights = static_cast<double>(args.n) * static_cast<double>(args.k);
  load(block, caps.fns.nbits.product, args, 50 + weights * (0.08 + 0.03 * static_cast<double>(args.m)), launch);
}

}  // namespace

void add_nbits_rows(RowsByOp& by_op) {
  add(by_op, native<NbitsProductArgs>(Op::kMatmulNbits, "nbits_product_f32", refuse_nbits, encode_nbits));
}

}  // namespace rlx::cpu
