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

// y[.., i, j] = x[.., rows[i], columns[j]] for elements of 4 bytes; here too an index is taken to the end.
struct GatherPlaneArgs {
  struct Axis {
    const void* index = nullptr;  // [count] of i32, or of i64
    bool index_is_i64 = false;
    int64_t n = 1, count = 0;
  };
  const float* x = nullptr;  // [outer, rows.n, columns.n]
  float* y = nullptr;        // [outer, rows.count, columns.count]
  int64_t outer = 1;
  Axis rows, columns;
};

struct GatherSumFns {
  Loop<GatherSumArgs> sum;
  Loop<GatherPlaneArgs> plane;
};
const GatherSumFns& gather_sum_fns(Isa isa);

}  // namespace rlx::cpu
