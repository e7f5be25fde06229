// SPDX-License-Identifier: Apache-2.0
// Sorts the lines of x[outer, n] in the order of semantics.md N4 and N9: NaN is greater than every number, and equal
// keys keep their places. No two elements are equal in the order that is used inside, because places count too. So the
// result does not depend on how a line is cut.
#pragma once

#include <cstddef>

#include "backends/cpu/loop.h"
#include "base/dtype.h"

namespace rlx::cpu {

struct SortArgs {
  const void* x = nullptr;
  void* values = nullptr;   // [outer, n], or null
  void* indices = nullptr;  // the same, in i64 or i32; what is being sorted lies here meanwhile
  DType dtype = DType::kF32;
  bool wide_indices = true;  // i64
  bool descending = false;
  int64_t outer = 1, n = 1;
  // A long line is cut into pieces and sorted by buckets: a range of the order each, as many as there are pieces. Each
  // piece counts its elements of each bucket, then moves them there; then each bucket is sorted by itself. These are
  // the three loops below, each a phase. A line of one piece needs only the last one.
  Pieces pieces{1, 1};
  int64_t* counts = nullptr;  // [outer, pieces, buckets]: how many elements of a piece are in a bucket
  int64_t k = 0;              // of sort_first_loop alone: values and indices are [outer, k]
};

Pieces pieces_of_sort(int64_t outer, int64_t n);
size_t sort_bytes(double n);  // of `counts`, for lines of up to so many elements

bool can_sort(DType dtype);
Loop<SortArgs> sort_count_loop();   // a part is a piece of a line
Loop<SortArgs> sort_spread_loop();  // likewise
Loop<SortArgs> sort_loop();         // a part is a bucket of a line
// The first k of each line in order, 0 < k <= n. Needs no memory but that of the results. A part is a line.
Loop<SortArgs> sort_first_loop();

}  // namespace rlx::cpu
