// SPDX-License-Identifier: Apache-2.0
// What several definitions share: how long ranges are, and what to read where there is nothing.
#pragma once

#include "ops/expr.h"

namespace rlx {

// How many numbers start, start + step, ... lie before `limit`: an i64. Integers are counted where their differences do
// not wrap; of 2^62 numbers or more, 2^62 are counted, which no memory holds either.
Expr range_count(Expr start, Expr limit, Expr step);

// 1 where an axis of this size has no element, else 0: what it lacks to have one.
Dim lacking(const Graph& graph, const Dim& n);
// x, with zeros in `count` axes from `first` on that have no element: then there is an index that may be read.
Expr never_empty(Expr x, size_t first, size_t count);

}  // namespace rlx
