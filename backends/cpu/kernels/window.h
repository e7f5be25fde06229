// SPDX-License-Identifier: Apache-2.0
// Folds of f32 or of 8-bit numbers over windows along up to three axes, for pooling, and where their extremes are.
#pragma once

#include "backends/cpu/gemm/conv.h"
#include "backends/cpu/kernels/reduce.h"

namespace rlx::cpu {

// Positions outside x count as the identity of the fold. A window of kSum has at most kMaxSummed elements.
struct WindowArgs {
  const void* x = nullptr;  // [planes, sizes]
  void* y = nullptr;        // [planes, outs]
  enum { kF32, kU8, kI8 } type = kF32;
  int64_t planes = 1;
  ConvAxis axes[kConvAxes];  // the last one fits_line
  ReduceFn fn = ReduceFn::kMax;
};
inline constexpr int64_t kMaxSummed = 512;

// The rows of x that some windows read are folded to a line on the stack, which holds at least one window.
inline constexpr int64_t kWindowLine = 4096;
constexpr bool fits_line(const ConvAxis& last) {
  return last.lhs_dilation == 1 && last.reach() < kWindowLine;
}

// Where in x the first extreme of each window is, or its first NaN; -1 if all of the window is outside x.
struct ArgWindowArgs {
  const float* x = nullptr;  // [planes, sizes]
  int64_t* y = nullptr;      // [planes, outs]
  int64_t planes = 1;
  ConvAxis axes[kConvAxes];
  bool is_min = false;
};

struct WindowFns {
  Loop<WindowArgs> fold;
  Loop<ArgWindowArgs> arg;
};
const WindowFns& window_fns(Isa isa);

}  // namespace rlx::cpu
