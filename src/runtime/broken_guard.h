// SPDX-License-Identifier: Apache-2.0
// What a person is told when sizes break a condition of the graph.
#pragma once

#include "ir/graph.h"

namespace rlx {

// RLX_E_SHAPE for a guard that does not hold at these sizes. Where one size is to blame: which sizes it may have, and
// the param, such as a table of positions, that has no more.
Status broken_guard(const Graph& graph, const Guard& guard, const SymbolLookup& sizes);

}  // namespace rlx
