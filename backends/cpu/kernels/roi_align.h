// SPDX-License-Identifier: Apache-2.0
// Boxes of images, each resampled to the same bins: a bin is the mean or the largest of samples, each interpolated
// between four elements. Positions are computed in f64, so every implementation picks the same elements.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

struct RoiAlignArgs {
  const float* x = nullptr;  // of any layout: strides in elements
  int64_t items = 1, channels = 1, height = 1, width = 1;
  int64_t item = 0, channel = 0, row = 0, column = 0;
  const float* boxes = nullptr;  // [count, 4]: x, y, x, y
  const void* image = nullptr;   // [count] of i32, or of i64; held within the items
  bool image_is_i64 = false;
  float* y = nullptr;  // [count, channels, rows, columns]
  int64_t count = 0, rows = 1, columns = 1;
  int64_t sampling = 1;  // samples of a bin along each axis
  double scale = 1;      // of the boxes
  bool half_pixel = true, is_max = false;
};
inline constexpr int64_t kMaxSampling = 16;

struct RoiAlignFns {
  Loop<RoiAlignArgs> align;  // a part is a box
};
const RoiAlignFns& roi_align_fns(Isa isa);

}  // namespace rlx::cpu
