// SPDX-License-Identifier: Apache-2.0
// Reductions of f32: x[outer, n, inner] along its middle axis. Class SUM: no accumulator runs over more than 512 terms
// before it is added to another.
#pragma once

#include "backends/cpu/loop.h"

namespace rlx::cpu {

enum class ReduceFn : int32_t { kSum, kProd, kMax, kMin };  // NaN wins in kMax and kMin

struct ReduceArgs {
  const float* x = nullptr;
  float* y = nullptr;  // [outer, inner]
  int64_t outer = 1, n = 1, inner = 1;
  ReduceFn fn = ReduceFn::kSum;
};
Loop<ReduceArgs> reduce_loop();

}  // namespace rlx::cpu
