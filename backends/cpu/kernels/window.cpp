// SPDX-License-Identifier: Apache-2.0
// The window kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/window.h"

#define RLX_KERNELS "backends/cpu/kernels/window.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const WindowFns& window_fns(Isa isa) {
  static constexpr const WindowFns* kTable[kIsaCount] = {&baseline::kWindow, &avx2::kWindow, &avx512::kWindow};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
