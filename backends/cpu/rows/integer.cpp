// SPDX-License-Identifier: Apache-2.0
// The row for products of integers of 32 and 64 bits.
#include "backends/cpu/gemm/integer.h"

#include "backends/cpu/rows/sides.h"

namespace rlx::cpu {

namespace {

// Bytes of the integers that kernels take; 0 for other dtypes.
int64_t bytes_of(DType dtype) {
  if (dtype == DType::kI32 || dtype == DType::kU32) return 4;
  return dtype == DType::kI64 || dtype == DType::kU64 ? 8 : 0;
}

std::string_view refuse_integers(const KernelQuery& query) {
  if (bytes_of(query.type(0).dtype) == 0) return "takes integers of 32 or 64 bits";
  if (query.node.out[0].rank() > kMaxBatchRank + 2) return "too many batch axes";
  return {};
}

template <class T>
void load_sides(const StepView& view, const Caps& caps, const Loop<MatmulSides<T>>& loop, double slower, void* block,
                Launch& launch) {
  MatmulSides<T> sides;
  set_sides(view, sides, view.node.attrs.flag("transpose_a"), view.node.attrs.flag("transpose_b"));
  load(block, loop, sides, slower * product_nanoseconds(caps, sides), launch);
}

void encode_integers(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const IntegerFns& fns = caps.fns.integer;
  if (bytes_of(view.in[0].dtype) == 4) return load_sides(view, caps, fns.product32, 3, block, launch);
  load_sides(view, caps, fns.product64, 8, block, launch);
}

}  // namespace

void add_integer_rows(RowsByOp& by_op) {
  static_assert(sizeof(Loaded<MatmulSides<uint32_t>>) == sizeof(Loaded<MatmulSides<uint64_t>>));
  add(by_op,
      loops<MatmulSides<uint64_t>>(Op::kMatmul, "matmul_integers", refuse_integers, encode_integers).strided(0b11));
}

}  // namespace rlx::cpu
