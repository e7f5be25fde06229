// SPDX-License-Identifier: Apache-2.0
// Padding and cropping of elements of any type: around a block stands one value, or elements of the block itself.
#pragma once

#include <cstddef>

#include "backends/cpu/loop.h"
#include "base/static_vector.h"

namespace rlx::cpu {

enum class PadMode : uint8_t { kConstant, kEdge, kReflect, kWrap };  // what stands around

// to[i] = from[i - lo] if that is inside; else the value, or the element that the mode selects (`from` must then have
// elements if `to` has). Both are dense and row-major.
struct PadArgs {
  const std::byte *from = nullptr, *value = nullptr;  // value: null is zeros
  std::byte* to = nullptr;
  int64_t element = 1;  // bytes: 1, 2, 4, 8 or 16
  PadMode mode = PadMode::kConstant;
  int32_t rank = 0;
  int64_t from_dims[kMaxRank] = {}, to_dims[kMaxRank] = {}, lo[kMaxRank] = {};
};
Loop<PadArgs> pad_loop();      // a part: some rows of `to`
void collapse_axes(PadArgs&);  // joins axes that are copied whole to those before them, if rows do not become too long

}  // namespace rlx::cpu
