// SPDX-License-Identifier: Apache-2.0
// The attention kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/kernels/attention.h"

#define RLX_KERNELS "backends/cpu/kernels/attention.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

const AttentionFns& attention_fns(Isa isa) {
  static constexpr const AttentionFns* kTable[kIsaCount] = {&baseline::kAttention, &avx2::kAttention,
                                                            &avx512::kAttention};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
