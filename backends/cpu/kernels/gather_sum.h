// SPDX-License-Identifier: Apache-2.0
// Weighted sums of the elements of an axis, as resampling wants them: y[.., o, ..] is the sum over t of
// weight[o, t] * x[.., index[o, t], ..]. An index beyond the axis is taken to its end.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

struct GatherSumArgs {
  const float* x = nullptr;     // [outer, n, inner]
  const void* index = nullptr;  // [count, taps] of i32, or of i64
  bool index_is_i64 = false;
  const float* weight = nullptr;  // [count, taps]
  float* y = nullptr;             // [outer, count, inner]
  int64_t outer = 1, n = 1, inner = 1, count = 0, taps = 0;
};

struct GatherSumFns {
  Loop<GatherSumArgs> sum;
};
const GatherSumFns& gather_sum_fns(Isa isa);

}  // namespace rlx::cpu
