// SPDX-License-Identifier: Apache-2.0
// The convolution kernels of every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/conv.h"

#include <algorithm>
#include <numeric>

#define RLX_KERNELS "backends/cpu/gemm/conv.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

static int64_t pack_filters_parts(const FilterPackArgs& p) {
  return p.groups * filter_panels(p.filters);
}

static void pack_filters_run(const FilterPackArgs& p, int64_t begin, int64_t end) {
  int64_t panels = filter_panels(p.filters);
  for (int64_t part = begin; part < end; part++) {
    int64_t first = part % panels * kFilterPanel;
    const LooseFloat* from = p.w + (part / panels * p.filters + first) * p.terms;
    float* to = p.packed + part * kFilterPanel * p.terms;
    float* of_zeros = p.packed + (pack_filters_parts(p) * p.terms + part) * kFilterPanel;
    std::fill_n(of_zeros, kFilterPanel, 0.0f);
    for (int64_t term = 0; term < p.terms; term++)
      for (int64_t i = 0; i < kFilterPanel; i++) {
        float weight = first + i < p.filters ? from[i * p.terms + term] : 0;
        of_zeros[i] += 0 * weight;
        *to++ = weight;
      }
  }
}

const Loop<FilterPackArgs> kPackFilters = {pack_filters_parts, pack_filters_run};

// The answer is the same for every Isa.
bool fits_lanes(const ConvArgs& args) {
  return baseline::lanes_fit(args);
}
bool fits_planes(const ConvArgs& args) {
  return baseline::planes_fit(args);
}
bool fits_points(const ConvArgs& args) {
  return baseline::points_fit(args);
}
bool fits_depthwise(const ConvArgs& args) {
  return baseline::depthwise_fits(args);
}
// Each place adds up its taps in one number.
bool fits_scatter(const ConvArgs& args) {
  constexpr int64_t kMaxTaps = 512, kFarthest = int64_t{1} << 48;
  bool is_dilated = false;
  int64_t taps = 1;  // of a place
  for (const ConvAxis& axis : args.axes) {
    int64_t apart = axis.lhs_dilation;
    if (axis.stride != 1 || apart > ConvAxis::kFar || axis.reach() >= ConvAxis::kFar) return false;
    if (axis.lo > kFarthest || axis.lo < -kFarthest) return false;
    is_dilated = is_dilated || apart > 1;
    taps *= std::min(ceil_div(axis.taps, apart / std::gcd(apart, axis.dilation)), kMaxTaps + 1);
  }
  return is_dilated && !args.is_packed && taps <= kMaxTaps;
}

const ConvFns& conv_fns(Isa isa) {
  static constexpr const ConvFns* kTable[kIsaCount] = {&baseline::kConv, &avx2::kConv, &avx512::kConv};
  return *kTable[static_cast<int>(isa)];
}

}  // namespace rlx::cpu
