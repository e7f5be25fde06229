// SPDX-License-Identifier: Apache-2.0
// The activations that fused ops apply. Each is the name of an op with attributes. One table in fused_act.cpp gives the
// choices of the attribute `act`, their meaning, and how a node is recognised as one.
#pragma once

#include <string_view>
#include <vector>

#include "ops/expr.h"

namespace rlx {

std::string_view activation_choices();  // "none|relu|.."
std::vector<Op> activation_ops();       // the ops of the table, each once

Expr apply_act(Expr x, std::string_view act);  // an unknown name is our bug: attributes were checked
std::string_view act_of(const Node& node);     // the activation that the node applies to its input; empty: none

// How a product ends, by the attributes of its op: `act`, with `slope` where that is leaky_relu; then at least `lo`, at
// most `hi`, where they are given.
Expr apply_ending(Expr x, const Attrs& attrs);
NamedAttrs act_attrs_of(const Node& node);  // `act` and `slope` of a product that ends with this node; empty: none can
bool has_act(const Attrs& attrs);

}  // namespace rlx
