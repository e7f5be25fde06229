// SPDX-License-Identifier: Apache-2.0
// The convolution kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/conv.h"

#define RLX_KERNELS "backends/cpu/gemm/conv.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

void pack_filters(const LooseFloat* w, int64_t groups, int64_t filters, int64_t terms, float* packed) {
  for (int64_t group = 0; group < groups; group++)
    for (int64_t first = 0; first < filters; first += kFilterPanel) {
      const LooseFloat* from = w + (group * filters + first) * terms;
      for (int64_t term = 0; term < terms; term++)
        for (int64_t i = 0; i < kFilterPanel; i++) *packed++ = first + i < filters ? from[i * terms + term] : 0;
    }
}

// The same for every Isa.
bool fits_lanes(const ConvArgs& args) {
  return baseline::lanes_fit(args);
}
bool fits_planes(const ConvArgs& args) {
  return baseline::planes_fit(args);
}

const ConvFns& conv_fns(Isa isa) {
  static constexpr const ConvFns* kTable[kIsaCount] = {&baseline::kConv, &avx2::kConv, &avx512::kConv};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
