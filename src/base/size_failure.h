// SPDX-License-Identifier: Apache-2.0
// Details of a status: keys that say whether its failure depends on sizes, and whether the run may be tried again.
#pragma once

#include <string_view>

namespace rlx {

// A failed import or run that may succeed at other sizes, or once all sizes are known.
inline constexpr std::string_view kDependsOnSizes = "sizes";
// In addition: the run had begun, and had found these sizes in the contents of a value.
inline constexpr std::string_view kFoundSizes = "found sizes";
// Of a failed run that must not be tried again: it may have begun an op that has effects.
inline constexpr std::string_view kMayHaveEffects = "effects";
// Of a failed run: its inputs give one name two sizes.
inline constexpr std::string_view kUnequalSizes = "unequal sizes";

}  // namespace rlx
