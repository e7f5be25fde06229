// SPDX-License-Identifier: Apache-2.0
// A block of elements of any type with one value or its own elements around it, or without its ends.
#pragma once

#include <cstddef>

#include "backends/cpu/loop.h"
#include "base/static_vector.h"

namespace rlx::cpu {

enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kWrap };  // what is around

// to[i] = from[i - lo] where that is inside, else the value, or the element that the mode names: then `from` has one
// wherever `to` has. Both are dense and row-major.
struct PadArgs {
  const std::byte *from = nullptr, *value = nullptr;  // value: null is zeros
  std::byte* to = nullptr;
  int64_t element = 1;  // bytes: 1, 2, 4, 8 or 16
  PadMode mode = PadMode::kConstant;
  int32_t rank = 0;
  int64_t from_dims[kMaxRank] = {}, to_dims[kMaxRank] = {}, lo[kMaxRank] = {};
};
Loop<PadArgs> pad_loop();  // a part: some rows of `to`

}  // namespace rlx::cpu
