// SPDX-License-Identifier: Apache-2.0
// Where truth values are true: index tuples in row-major order, padded with -1.
#pragma once

#include "backends/cpu/loop.h"
#include "base/static_vector.h"

namespace rlx::cpu {

struct NonzeroArgs {
  const uint8_t* x = nullptr;  // any byte but 0 is true
  int64_t* index = nullptr;    // [most, rank]
  int64_t* count = nullptr;    // how many were found, at most `most`
  int64_t* counts = nullptr;   // how many each piece of x holds, where there are several
  int64_t n = 1, most = 0;
  int32_t rank = 0;
  int64_t dims[kMaxRank] = {};
};

inline constexpr int64_t kNonzeroPiece = 32768;  // at least
constexpr Pieces nonzero_pieces(int64_t n) {
  return cut(n, 1, kNonzeroPiece, 64);
}

// A part is a piece of x. With `counts` the first loop runs before the second.
Loop<NonzeroArgs> nonzero_count_loop();
Loop<NonzeroArgs> nonzero_loop();

}  // namespace rlx::cpu
