// SPDX-License-Identifier: Apache-2.0
// Bodies: which symbols are their own (all others are those of the graph around them), and how deep they nest.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// The symbols whose sizes are decided in a run by the contents of values of this graph. They have no meaning outside,
// even if the graph around it has a symbol of the same name.
std::vector<std::string> own_symbols(const Graph& graph);

// The symbols of the carries of a node's bodies: every trip sets them again. They have no meaning outside either.
const std::vector<std::string>& carried_symbols(const Attrs& attrs);

// Both.
std::vector<std::string> own_symbols(const Attrs& attrs, const Graph& body);

// The most graphs that may nest: passes, plans and texts follow them by recursion.
inline constexpr int kMostNestedGraphs = 64;
// How many graphs nest in this one, itself included.
int nesting(const Graph& graph);

}  // namespace rlx
