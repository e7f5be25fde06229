// SPDX-License-Identifier: Apache-2.0
// Loops that move elements of any type and do no arithmetic on them. One source for every Isa: memory is the limit.
// Strides and sizes count bytes unless they say otherwise.
#pragma once

#include "backends/cpu/loop.h"
#include "base/bounds.h"
#include "base/static_vector.h"

namespace rlx::cpu {

// to[index] = from[sum index * stride], dense row-major in dims. Elements of 1, 2, 4, 8 or 16 bytes.
struct CopyArgs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  int64_t element = 1;
  int32_t rank = 0;
  int64_t dims[kMaxRank] = {};
  int64_t strides[kMaxRank] = {};  // of from
};
Loop<CopyArgs> copy_loop();     // a part: one block of rows
void collapse_dims(CopyArgs&);  // joins neighbours that lie in one run, drops axes of size 1

// Rows of `bytes` picked by index: to[o, i] = from[o, index[i]]. Indices are checked row by row, as rows are copied.
struct GatherArgs {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  const void* index = nullptr;  // of i32, or of i64
  bool index_is_i64 = false;
  int64_t outer = 1, n = 0, count = 0, bytes = 0;
  Bounds bounds = Bounds::kError;
};
constexpr int64_t kGatherPart = 64;  // rows
int64_t gather_parts(const GatherArgs&);
// The position of the first index of these parts that is out of range, or -1.
int64_t gather_rows(const GatherArgs&, int64_t begin, int64_t end);

}  // namespace rlx::cpu
