// SPDX-License-Identifier: Apache-2.0
// Convolutions of f32, channels first, as matrix products: the filters of a group times the windows of its channels,
// which are gathered into panels on the stack. Sums are of class SUM: at most 512 terms run in one accumulator.
#pragma once

#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

// Along one spatial axis a window reads position (out * stride + tap * dilation - lo) / lhs_dilation if that is an
// integer inside x; otherwise it reads 0.
struct ConvAxis {
  int64_t size = 1, out = 1, taps = 1;
  int64_t stride = 1, dilation = 1, lhs_dilation = 1, lo = 0;

  // From the first tap to the last, if there are two. kFar stands for all that is farther: no copy on a stack holds it.
  static constexpr int64_t kFar = int64_t{1} << 24;
  constexpr int64_t reach() const {
    if (taps < 2) return 0;
    return dilation > kFar / (taps - 1) ? kFar : (taps - 1) * dilation;
  }
};

inline constexpr int kConvAxes = 3;

struct ConvShape {
  int64_t items = 1, groups = 1, channels = 1, filters = 1;  // of one group
  ConvAxis axes[kConvAxes];                                  // missing axes have size 1 and come first

  int64_t taps() const { return axes[0].taps * axes[1].taps * axes[2].taps; }
  int64_t terms() const { return channels * taps(); }
  int64_t plane() const { return axes[0].size * axes[1].size * axes[2].size; }
  int64_t places() const { return axes[0].out * axes[1].out * axes[2].out; }
};

struct ConvArgs : ConvShape {
  const float* x = nullptr;  // [items, groups * channels, spatial]
  const float* w = nullptr;  // [groups * filters, channels * taps], or packed
  float* y = nullptr;        // [items, groups * filters, places]
  bool is_packed = false;
  Epilogue epilogue;  // its residual is dense
};

// The packed form of [groups * filters, terms]: the filters of a group in panels of kFilterPanel, each panel term by
// term, with zeros for missing filters in the last panel. Behind them, what each filter gives where x is 0 everywhere:
// 0, or NaN if it has a weight that is not finite.
inline constexpr int64_t kFilterPanel = 32;
constexpr int64_t filter_panels(int64_t filters) {
  return ceil_div(filters, kFilterPanel);
}
constexpr int64_t packed_filters(int64_t groups, int64_t filters, int64_t terms) {  // in elements
  return groups * filter_panels(filters) * kFilterPanel * (terms + 1);
}
struct FilterPackArgs {
  const LooseFloat* w = nullptr;
  int64_t groups = 1, filters = 0, terms = 0;
  float* packed = nullptr;
};
extern const Loop<FilterPackArgs> kPackFilters;  // one part is one panel; the same for every Isa

// Limits of the direct loop. It serves groups that are too small for a product, and keeps the rows that it reads on the
// stack.
inline constexpr int64_t kMaxDirectStride = 16, kMaxReach = 64;
constexpr bool fits_direct(const ConvAxis& last) {
  return last.lhs_dilation == 1 && last.stride <= kMaxDirectStride && last.reach() / last.stride < kMaxReach;
}

// Whether the loop with filters along the lanes takes these arguments. It needs packed filters and keeps its part of x
// on the stack.
bool fits_lanes(const ConvArgs& args);

// Whether the loop over planes takes these arguments: groups of few filters, packed or not.
bool fits_planes(const ConvArgs& args);

// Whether the loop over points takes these arguments: packed filters of few channels, on single elements of x.
bool fits_points(const ConvArgs& args);

// Whether the loop over bands of depthwise convolutions takes these arguments: common windows on long rows.
bool fits_depthwise(const ConvArgs& args);

// Whether the loop that scatters the elements of a dilated x takes these arguments: filters that are not packed.
bool fits_scatter(const ConvArgs& args);

struct ConvFns {
  Loop<ConvArgs> product, direct, lanes, planes, points, depthwise, scatter;
};
const ConvFns& conv_fns(Isa isa);

}  // namespace rlx::cpu
