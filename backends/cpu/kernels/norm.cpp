// SPDX-License-Identifier: Apache-2.0
// The softmax and norm kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/norm.h"

#define RLX_KERNELS "backends/cpu/kernels/norm.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const NormFns& norm_fns(Isa isa) {
  static constexpr const NormFns* kTable[kIsaCount] = {&baseline::kNorms, &avx2::kNorms, &avx512::kNorms};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
