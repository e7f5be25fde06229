// SPDX-License-Identifier: Apache-2.0
// The rope kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/rope.h"

#define RLX_KERNELS "backends/cpu/kernels/rope.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const RopeFns& rope_fns(Isa isa) {
  static constexpr const RopeFns* kTable[kIsaCount] = {&baseline::kRope, &avx2::kRope, &avx512::kRope};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
