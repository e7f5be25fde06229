// SPDX-License-Identifier: Apache-2.0
// The symbols of whole graphs; graph.h has those of a node. A body has only those symbols of the graph around it that
// it uses: if each had all of them, many bodies would take quadratic time.
#pragma once

#include <span>

#include "ir/graph.h"

namespace rlx {

void visit_symbols(const Graph& graph, VisitSymbol visit);  // of its nodes and guards

// Declares the symbols of the dims, or of the node, in `to`, with the ranges that they have in `from`.
Status share_symbols(const Graph& from, std::span<const Dim> dims, Graph& to);
Status share_symbols(const Graph& from, const Node& node, Graph& to);

// The graph with no other symbols than those it uses. They have the ranges that they have in the graph, or around it:
// the result stands alone, and declares them in the order of their names.
Result<Graph> with_used_symbols(Graph graph);

}  // namespace rlx
