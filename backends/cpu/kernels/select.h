// SPDX-License-Identifier: Apache-2.0
// What is chosen by order along the middle axis of x[outer, n, inner]: the position of an extreme, or the k first in
// order. One order everywhere: NaN is greater than every number, equal keys keep their places (semantics.md N4, N9).
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
  bool last = false;      // of equal ones; with k = 1 only
  bool nan_wins = false;  // also of the smallest
};

bool can_select(DType dtype);
Loop<SelectArgs> select_loop();

}  // namespace rlx::cpu
