// SPDX-License-Identifier: Apache-2.0
// The products of integers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/whole.h"

#include <cstddef>

#define RLX_KERNELS "backends/cpu/gemm/whole.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const WholeFns& whole_fns(Isa isa) {
  static constexpr const WholeFns* kTable[kIsaCount] = {&baseline::kWhole, &avx2::kWhole, &avx512::kWhole};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
