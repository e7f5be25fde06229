// SPDX-License-Identifier: Apache-2.0
// The weighted sums of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/gather_sum.h"

#define RLX_KERNELS "backends/cpu/kernels/gather_sum.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const GatherSumFns& gather_sum_fns(Isa isa) {
  static constexpr const GatherSumFns* kTable[kIsaCount] = {&baseline::kGatherSum, &avx2::kGatherSum,
                                                            &avx512::kGatherSum};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
