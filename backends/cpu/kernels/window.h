// SPDX-License-Identifier: Apache-2.0
// Folds of f32 over windows along up to three axes, as pooling reads them.
#pragma once

#include "backends/cpu/gemm/conv.h"
#include "backends/cpu/kernels/reduce.h"

namespace rlx::cpu {

// Positions outside of x count as the fold's neutral element. A window of kSum has at most kMostSummed elements.
struct WindowArgs {
  const float* x = nullptr;  // [planes, sizes]
  float* y = nullptr;        // [planes, outs]
  int64_t planes = 1;
  ConvAxis axes[kConvAxes];  // the last one fits_direct
  ReduceFn fn = ReduceFn::kMax;
};
inline constexpr int64_t kMostSummed = 512;

struct WindowFns {
  Loop<WindowArgs> fold;
};
const WindowFns& window_fns(Isa isa);

}  // namespace rlx::cpu
