// SPDX-License-Identifier: Apache-2.0
// Selects by order along the middle axis of x[outer, n, inner]: the position of an extreme, or the first k in order.
// The order is that of semantics.md N4 and N9: NaN is greater than every number, and equal keys keep their places.
#pragma once

#include <cstddef>

#include "backends/cpu/loop.h"
#include "base/dtype.h"

namespace rlx::cpu {

inline constexpr int64_t kMaxSelected = 1024;
int64_t most_selected(DType dtype);  // at least kMaxSelected

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
  int64_t line = 0;       // not 0: x is [outer, n] of pieces of lines that are so long; the last piece may be shorter
  const int64_t* positions = nullptr;  // not null: x holds what was selected of pieces, from these places of the line
};

// Cuts long lines of the last axis if there are few of them. Returns true if it did: then `pieces` must run first, into
// `partial`, and `args` after it.
bool cut_lines(SelectArgs& args, SelectArgs& pieces, std::byte* partial);
// Bytes of `partial` that suffice for lines of so many elements.
size_t selected_bytes(double n, int64_t k);

bool can_select(DType dtype);
Loop<SelectArgs> select_loop();

}  // namespace rlx::cpu
