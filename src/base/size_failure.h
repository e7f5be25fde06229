// SPDX-License-Identifier: Apache-2.0
// Details of a status that say what its failure depends on.
#pragma once

#include <string_view>

namespace rlx {

// Of a failed import or run: other sizes, or known ones, may pass.
inline constexpr std::string_view kDependsOnSizes = "sizes";
// Besides: the run had begun, and found these sizes in contents.
inline constexpr std::string_view kFoundSizes = "found sizes";
// Of a failed run: its inputs give one name two sizes.
inline constexpr std::string_view kUnequalSizes = "unequal sizes";

}  // namespace rlx
