// SPDX-License-Identifier: Apache-2.0
// The products with weights of few bits for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/nbits.h"

#include <cstddef>

#define RLX_KERNELS "backends/cpu/gemm/nbits.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const NbitsFns& nbits_fns(Isa isa) {
  static constexpr const NbitsFns* kTable[kIsaCount] = {&baseline::kNbits, &avx2::kNbits, &avx512::kNbits};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
