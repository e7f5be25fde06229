// SPDX-License-Identifier: Apache-2.0
// Patterns of slices along the last axis: parts of a value whose rows are cut in the same way.
#pragma once

#include <functional>
#include <string_view>

#include "rewrite/pattern.h"

namespace rlx {

// A slice of x along its last axis alone. `holds` tests which columns it takes, and `why` names them in near misses.
using ColumnTest = std::function<bool(Expr x, Expr part, const Dim& start, int64_t step)>;
Pattern columns(const Pattern& x, std::string_view why, ColumnTest holds);

enum class ColumnHalf { kFirst, kSecond, kEven, kOdd };
Pattern half_of(const Pattern& x, ColumnHalf half);

}  // namespace rlx
