// SPDX-License-Identifier: Apache-2.0
// Images read at the positions of a grid: at each place a weighted sum over the elements around its position, the same
// ones in all channels. Positions and weights are computed in f64, so every implementation picks the same elements.
#pragma once

#include "backends/cpu/loop.h"

namespace rlx::cpu {

inline constexpr int kGridAxes = 3;

struct GridSampleArgs {
  const float* x = nullptr;     // [items, channels, sizes]
  const float* grid = nullptr;  // [items, places, axes], the innermost axis first
  float* y = nullptr;           // [items, channels, places]
  int64_t items = 1, channels = 1, places = 1;
  int32_t axes = 2;
  int64_t sizes[kGridAxes] = {};
  enum Mode : uint8_t { kNearest, kLinear, kCubic } mode = kLinear;
  enum Padding : uint8_t { kZeros, kBorder, kReflection } padding = kZeros;
  bool align_corners = false;
};

Loop<GridSampleArgs> grid_sample_loop();  // a part is some places of an item

}  // namespace rlx::cpu
