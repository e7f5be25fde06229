// SPDX-License-Identifier: Apache-2.0
// The product kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/gemm.h"

#define RLX_KERNELS "backends/cpu/gemm/gemm.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const GemmFns& gemm_fns(Isa isa) {
  static constexpr const GemmFns* kTable[kIsaCount] = {&baseline::kGemm, &avx2::kGemm, &avx512::kGemm};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
