// SPDX-License-Identifier: Apache-2.0
// Boxes in the order of their scores, each kept unless it overlaps one that was kept before it.
#pragma once

#include "backends/cpu/loop.h"
#include "base/dtype.h"

namespace rlx::cpu {

struct KeepBoxesArgs {
  const void* boxes = nullptr;     // [batch, n, 4]: y low, x low, y high, x high
  DType dtype = DType::kF32;       // of boxes, or f64
  const int64_t* order = nullptr;  // [batch, classes, n]: boxes, the best first; an index out of range is clamped
  const uint8_t* good = nullptr;   // [batch, classes, n], in that order: whether a box may be kept
  const int64_t* most = nullptr;   // how many boxes of a line may be kept
  uint8_t* kept = nullptr;         // [batch, classes, n], in that order: whether a box is kept
  double iou = 0;                  // boxes that share more of their union overlap
  int64_t batch = 1, classes = 1, n = 0;
};

Loop<KeepBoxesArgs> keep_boxes_loop();  // a part is a line

}  // namespace rlx::cpu
