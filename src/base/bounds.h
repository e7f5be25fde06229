// SPDX-License-Identifier: Apache-2.0
// The choices of the attribute and compile option `bounds`.
#pragma once

#include <cstdint>

#include "base/choices.h"

namespace rlx {

enum class Bounds : uint8_t { kError, kClamp, kDrop };  // what an index out of range does (semantics.md X2)
template <>
inline constexpr std::string_view kChoices<Bounds> = "error|clamp|drop";

}  // namespace rlx
