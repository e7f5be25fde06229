// SPDX-License-Identifier: Apache-2.0
// What is known of integer values that sizes make: positions along axes, times steps, plus an offset. It turns index
// tricks into slices and decides comparisons of positions.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// offset + the sum over axes of steps[axis] * position along the axis.
struct Affine {
  Dim offset;
  std::vector<Dim> steps;  // one for each axis of the value; 0: equal along it

  bool is_uniform() const;  // the same number everywhere
};

// `value` in that form; nullopt if it is not known to have one. Exact: only i32 and i64, where no size wraps.
std::optional<Affine> affine_form(const Graph& graph, Value value);

// Both on the axes of `rank`, aligned right; a step of a missing axis is 0.
Affine operator-(const Affine& a, const Affine& b);

// Bounds of all elements of a value of these dims. A side of which nothing is known is Interval::kUnbounded away.
Interval bounds_of(const Graph& graph, const Affine& form, std::span<const Dim> dims);

}  // namespace rlx
