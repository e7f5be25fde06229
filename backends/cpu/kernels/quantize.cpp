// SPDX-License-Identifier: Apache-2.0
// The quantisation kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/quantize.h"

#include <cstddef>

#define RLX_KERNELS "backends/cpu/kernels/quantize.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const QuantizeFns& quantize_fns(Isa isa) {
  static constexpr const QuantizeFns* kTable[kIsaCount] = {&baseline::kQuantize, &avx2::kQuantize, &avx512::kQuantize};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
