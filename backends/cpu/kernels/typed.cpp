// SPDX-License-Identifier: Apache-2.0
// The typed elementwise loops of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/typed.h"

#include <cstddef>
#include <type_traits>

#include "base/half.h"
#include "base/visit.h"

namespace rlx::cpu {

static constexpr DTypeSet kTypedNumbers = dtypes::I | DTypeSet{DType::kF32, DType::kF64};
static constexpr DTypeSet kTypedHalves = {DType::kF16, DType::kBF16};

}  // namespace rlx::cpu

#define RLX_KERNELS "backends/cpu/kernels/typed.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

void collapse_dims(TypedArgs& args) {
  int32_t rank = 0;
  for (int32_t d = 0; d < args.rank; ++d) {
    if (args.dims[d] == 1) continue;
    bool joins = rank > 0;
    for (int32_t i = 0; i < args.input_count && joins; ++i)
      joins = args.inputs[i].strides[rank - 1] == args.inputs[i].strides[d] * args.dims[d];
    int32_t to = joins ? rank - 1 : rank;
    args.dims[to] = joins ? args.dims[to] * args.dims[d] : args.dims[d];
    for (int32_t i = 0; i < args.input_count; ++i) args.inputs[i].strides[to] = args.inputs[i].strides[d];
    rank = to + 1;
  }
  if (rank == 0) {
    args.dims[rank] = 1;
    for (TypedInput& input : args.inputs) input.strides[rank] = 0;
    rank = 1;
  }
  args.rank = rank;
}

const TypedFns& typed_fns(Isa isa) {
  static constexpr const TypedFns* kTable[kIsaCount] = {&baseline::kTyped, &avx2::kTyped, &avx512::kTyped};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
