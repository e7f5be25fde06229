// SPDX-License-Identifier: Apache-2.0
// Dims of a walk over several operands.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace rlx::cpu {

// Joins neighbouring dims that are contiguous in all operands, and drops those of size 1: fewer, longer rows. The
// meaning stays. Takes the strides of each operand, one for each dim, in any unit. Returns the new rank, at least 1.
inline int collapse(int rank, int64_t* dims, std::span<int64_t* const> strides) {
  int kept = 0;
  for (int d = 0; d < rank; d++) {
    if (dims[d] == 1) continue;
    bool joins = kept > 0 && std::all_of(strides.begin(), strides.end(), [&](const int64_t* operand) {
                   return operand[kept - 1] == operand[d] * dims[d];
                 });
    int to = joins ? kept - 1 : kept++;
    dims[to] = joins ? dims[to] * dims[d] : dims[d];
    for (int64_t* operand : strides) operand[to] = operand[d];
  }
  if (kept > 0) return kept;
  dims[0] = 1;
  for (int64_t* operand : strides) operand[0] = 0;
  return 1;
}

}  // namespace rlx::cpu
