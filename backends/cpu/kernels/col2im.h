// SPDX-License-Identifier: Apache-2.0
// Columns of windows, added up where the windows lie.
#pragma once

#include "backends/cpu/loop.h"
#include "base/dtype.h"

namespace rlx::cpu {

inline constexpr int kCol2imAxes = 3;

struct Col2imAxis {
  int64_t size = 1, count = 1;  // of the result; of windows
  int64_t taps = 1, stride = 1, dilation = 1, lo = 0;
};

struct Col2imArgs {
  const void* from = nullptr;  // [planes, taps of each axis ..., windows of each axis ...]
  void* to = nullptr;          // [planes, size of each axis ...]
  DType dtype = DType::kF32;   // or f64
  int64_t planes = 1;
  Col2imAxis axes[kCol2imAxes];
};

Loop<Col2imArgs> col2im_loop();  // a part is a plane

}  // namespace rlx::cpu
