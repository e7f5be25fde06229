// SPDX-License-Identifier: Apache-2.0
// The convolution kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/conv.h"

#define RLX_KERNELS "backends/cpu/gemm/conv.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

void pack_filters(const LooseFloat* w, int64_t groups, int64_t filters, int64_t terms, float* packed) {
  FilterBlocks blocks = filter_blocks(filters);
  for (int64_t group = 0; group < groups; group++)
    for (int64_t first = 0; first < filters; first += blocks.size) {
      int64_t count = filters - first < blocks.size ? filters - first : blocks.size;
      const LooseFloat* from = w + (group * filters + first) * terms;
      float* to = packed + (group * filters + first) * terms;
      for (int64_t term = 0; term < terms; term++)
        for (int64_t filter = 0; filter < count; filter++) *to++ = from[filter * terms + term];
    }
}

const ConvFns& conv_fns(Isa isa) {
  static constexpr const ConvFns* kTable[kIsaCount] = {&baseline::kConv, &avx2::kConv, &avx512::kConv};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
