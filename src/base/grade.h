// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/choices.h"

namespace rlx {

// What a rewrite may change (semantics.md R1-R3): nothing; the rounding; also -0, NaN, inf. The compile option `math`
// is the loosest that is allowed.
enum class Grade : uint8_t { kExact, kClose, kFast };
template <>
inline constexpr std::string_view kChoices<Grade> = "strict|close|fast";

}  // namespace rlx
