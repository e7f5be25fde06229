// SPDX-License-Identifier: Apache-2.0
// The symbols of guards and of whole graphs; graph.h has those of a node.
#pragma once

#include "ir/graph.h"

namespace rlx {

using VisitSymbol = std::function<void(const std::string& symbol)>;

void visit_symbols(const Guard& guard, const VisitSymbol& visit);
void visit_symbols(const Graph& graph, const VisitSymbol& visit);  // of its nodes and guards

}  // namespace rlx
