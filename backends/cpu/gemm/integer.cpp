// SPDX-License-Identifier: Apache-2.0
// The products of integers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/integer.h"

#include <cstddef>

#define RLX_KERNELS "backends/cpu/gemm/integer.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const IntegerFns& integer_fns(Isa isa) {
  static constexpr const IntegerFns* kTable[kIsaCount] = {&baseline::kIntegers, &avx2::kIntegers, &avx512::kIntegers};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
