// SPDX-License-Identifier: Apache-2.0
// Values that neither mathematics nor the rules of sums define. What a device has there, and all that follows from it,
// is not judged; everything else is.
#pragma once

#include "edit.h"
#include "ops/expr.h"

namespace rlx::test {

// A graph of primitives, and its bodies, where each element of a float value that may be anything is `stand_in`:
// - a number that its dtype cannot hold;
// - a sum or product of terms that may leave the dtype on the way, in some order (semantics.md R2, C);
// - a sum with a value that is not finite and has the weight 0 in attention (A5);
// - what a singular matrix, or one that rounding may make singular, has as factors and solutions.
// An output element that is the same for all stand-ins does not depend on these.
Result<Graph> with_open_values(const Graph& primitives, double stand_in);

// What the node would be, in f64, of the sizes of the finite elements of its operands. Of a sum, this is what its
// roundings are a part of.
Expr of_sizes(Builder& builder, const Node& node, const Values& in);

// The number of each element, in row-major order, in f32.
Expr number_of_each(Expr value);

// Whether the node finds factors or solutions of matrices.
bool solves_matrices(Op op);

}  // namespace rlx::test
