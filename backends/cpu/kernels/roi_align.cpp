// SPDX-License-Identifier: Apache-2.0
// The aligned boxes of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/roi_align.h"

#define RLX_KERNELS "backends/cpu/kernels/roi_align.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const RoiAlignFns& roi_align_fns(Isa isa) {
  static constexpr const RoiAlignFns* kTable[kIsaCount] = {&baseline::kRoiAlign, &avx2::kRoiAlign, &avx512::kRoiAlign};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
