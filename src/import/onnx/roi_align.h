// SPDX-License-Identifier: Apache-2.0
// RoiAlign where the op roi_align differs from it: built sample by sample.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

struct RoiAlign {
  int64_t height = 1, width = 1;
  int64_t sampling = 0;  // samples of a bin along each axis; 0: as many as the bin has elements
  double scale = 1;
  bool half_pixel = true, is_max = false;
};

// The result [boxes, channels, height, width], of the inputs x, boxes and the image of each box.
Expr roi_align_by_samples(Call& call, const RoiAlign& node);

}  // namespace rlx::onnx
