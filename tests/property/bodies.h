// SPDX-License-Identifier: Apache-2.0
// What the generators of bodies share.
#pragma once

#include "draw.h"

namespace rlx::test {

// Mostly without what nothing needs, nodes and sizes alike.
std::shared_ptr<const Graph> shared_body(Draw& draw, Graph graph);
// The body's inputs, one for each of these types.
std::optional<std::vector<Expr>> add_inputs(Draw& body, Builder& builder, const std::vector<ValueType>& types);
// One of the body's inputs, of a type that `accepts` takes.
std::optional<Value> random_input(Draw& body, const std::function<bool(const ValueType&)>& accepts);
// A bool of rank 0, which follows from sizes, from contents, or from nothing.
Expr random_condition(Draw& draw, Builder& builder);

}  // namespace rlx::test
