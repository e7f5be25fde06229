// SPDX-License-Identifier: Apache-2.0
// The typed elementwise loops of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/typed.h"

#include <cstddef>
#include <type_traits>

#include "backends/cpu/kernels/collapse.h"
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
  int64_t* strides[kMaxTypedInputs];
  for (int i = 0; i < args.input_count; ++i) strides[i] = args.inputs[i].strides;
  args.rank = collapse(args.rank, args.dims, std::span(strides, static_cast<size_t>(args.input_count)));
}

const TypedFns& typed_fns(Isa isa) {
  static constexpr const TypedFns* kTable[kIsaCount] = {&baseline::kTyped, &avx2::kTyped, &avx512::kTyped};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
