// SPDX-License-Identifier: Apache-2.0
// What can be known of a value by looking at how it is made: constants of equal elements, ranges of integers.
#pragma once

#include <optional>

#include "ops/expr.h"

namespace rlx {

// The number that all elements of a constant equal, seen through reshape, broadcast and cast; nullopt if there is none.
std::optional<double> splat_value(const Graph& graph, Value value);

// Bounds of the elements of an integer value made of iotas, sizes and constants; nullopt if nothing is known. A value
// of which one end is open has Interval::kUnbounded there.
std::optional<Interval> integer_range(const Graph& graph, Value value);

}  // namespace rlx
