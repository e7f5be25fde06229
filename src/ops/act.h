// SPDX-License-Identifier: Apache-2.0
// The activations that fused ops apply, each the name of an op with its attributes. All that is to know of them stands
// in one table: the choices of the attribute `act`, what they mean, and how a node is recognised as one.
#pragma once

#include <string_view>
#include <vector>

#include "ops/expr.h"

namespace rlx {

std::string_view activation_choices();  // "none|relu|.."
std::vector<Op> activation_ops();       // that a node may be to be one, each once

Expr apply_act(Expr x, std::string_view act);  // a name that is none of them is our bug: attributes were checked
std::string_view act_of(const Node& node);     // the name of what the node applies to its input; empty: none of them

}  // namespace rlx
