// SPDX-License-Identifier: Apache-2.0
// The grades of rewrites, which are the choices of the compile option `math`.
#pragma once

#include <cstdint>

#include "base/choices.h"

namespace rlx {

// What a rewrite may change (semantics.md R1-R3): kExact nothing, kClose the rounding, kFast also -0, NaN and inf. The
// compile option `math` names the loosest grade that is allowed.
enum class Grade : uint8_t { kExact, kClose, kFast };
template <>
inline constexpr std::string_view kChoices<Grade> = "strict|close|fast";

}  // namespace rlx
