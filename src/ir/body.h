// SPDX-License-Identifier: Apache-2.0
// Bodies: which symbols are their own (all others are those of the graph around them), and how many may nest.
#pragma once

#include <string>
#include <vector>

#include "base/function_ref.h"
#include "ir/graph.h"

namespace rlx {

// The graphs in the attributes of a node, in their order.
std::vector<const Graph*> bodies_of(const Attrs& attrs);

// The symbols whose sizes nodes of this graph decide (decided_sizes). They have no meaning outside, even if the graph
// around it has a symbol of the same name.
std::vector<std::string> decided_symbols(const Graph& graph);

// The symbols in the sizes of the carries of a node's bodies: every trip sets them again. They have no meaning outside
// either.
const std::vector<std::string>& carried_symbols(const Attrs& attrs);

// The symbols of a body that have no meaning outside: both kinds. `attrs` are those of the node whose body it is.
std::vector<std::string> own_symbols(const Attrs& attrs, const Graph& body);

// Visits the axes of a node's outputs whose size the node decides.
using VisitAxis = FunctionRef<void(uint32_t output, uint32_t axis, const std::string& symbol, bool is_fresh)>;
void visit_decided_axes(const Node& node, VisitAxis visit);

// How deep graphs may nest, and how many bodies a graph may have at all levels: passes, plans and texts follow them by
// recursion, and visit a graph once for each place in which it is a body.
inline constexpr int kMaxNestedGraphs = 64;
inline constexpr int64_t kMaxBodies = int64_t{1} << 16;
// RLX_E_UNSUPPORTED if a graph with this body would exceed one of these.
Status check_nesting(const Graph& body);

}  // namespace rlx
