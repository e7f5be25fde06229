// SPDX-License-Identifier: Apache-2.0
// The nodes of a graph in the place of a node.
#pragma once

#include <span>

#include "ops/expr.h"

namespace rlx {

// Why a graph cannot be inlined: it has params, or its contents decide sizes, which would need a name at each place.
Status check_inlinable(const Graph& body);

// The operand as the body sees it: where its input has the literal 1, so has the result. Around the body such a dim may
// be a symbol that a guard makes 1, which does not broadcast.
Expr as_body_input(const Graph& body, size_t input, Expr operand);

// Adds the nodes of `body` to the builder's graph, on these inputs. Its symbols are those of that graph, which must
// have its params too. Returns its outputs; none if it has failed.
Outputs inlined(Builder& builder, const Graph& body, std::span<const Expr> in);

// The same for a body with symbols of its own: each gets the size of the input axis that it names.
Outputs inlined_at_inputs(Builder& builder, const Graph& body, std::span<const Expr> in);

}  // namespace rlx
