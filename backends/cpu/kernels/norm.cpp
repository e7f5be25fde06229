// SPDX-License-Identifier: Apache-2.0
// The softmax and norm kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/norm.h"

#define RLX_KERNELS "backends/cpu/kernels/norm.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const RowFns& row_fns(Isa isa) {
  static constexpr const RowFns* kTable[kIsaCount] = {&baseline::kRows, &avx2::kRows, &avx512::kRows};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
