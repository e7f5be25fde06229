// SPDX-License-Identifier: Apache-2.0
// Selects by order along the middle axis of x[outer, n, inner]: the position of an extreme, or the first k in order.
// The order is that of semantics.md N4 and N9: NaN is greater than every number, and equal keys keep their places.
#pragma once

#include "backends/cpu/loop.h"
#include "base/dtype.h"

namespace rlx::cpu {

inline constexpr int64_t kMostSelected = 128;

struct SelectArgs {
  const void* x = nullptr;
  void* values = nullptr;   // [outer, k, inner], or null
  void* indices = nullptr;  // the same, in i64 or i32
  DType dtype = DType::kF32;
  bool wide_indices = true;  // i64
  int64_t outer = 1, n = 1, inner = 1, k = 1;
  bool largest = true;
  bool last = false;      // of equal elements take the last; only with k = 1
  bool nan_wins = false;  // even for the smallest
};

bool can_select(DType dtype);
Loop<SelectArgs> select_loop();

}  // namespace rlx::cpu
