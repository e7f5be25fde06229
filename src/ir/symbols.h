// SPDX-License-Identifier: Apache-2.0
// The symbols of whole graphs; graph.h has those of a node.
#pragma once

#include "ir/graph.h"

namespace rlx {

void visit_symbols(const Graph& graph, VisitSymbol visit);  // of its nodes and guards

}  // namespace rlx
