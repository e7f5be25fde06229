// SPDX-License-Identifier: Apache-2.0
// Indices that are values, and the places that they stand for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bounds.h"

namespace rlx::cpu {

template <class Args>
int64_t index_at(const Args& args, int64_t i) {
  return args.index_is_i64 ? static_cast<const int64_t*>(args.index)[i] : static_cast<const int32_t*>(args.index)[i];
}

// Finds the place of an index in n, or -1 if the index is ignored. Returns false for an error.
inline bool find_place(Bounds bounds, int64_t index, int64_t n, int64_t& at) {
  at = index < 0 ? index + n : index;
  if (at >= 0 && at < n) return true;
  if (bounds == Bounds::kError) return false;
  at = bounds == Bounds::kClamp && n > 0 ? std::clamp<int64_t>(at, 0, n - 1) : -1;
  return true;
}

}  // namespace rlx::cpu
