// SPDX-License-Identifier: Apache-2.0
// The message for sizes that break a guard of the graph.
#pragma once

#include "ir/graph.h"

namespace rlx {

// RLX_E_SHAPE for a guard that does not hold at these sizes. If a single symbol is the cause, the message says which
// sizes it may have, and names the param that limits it, such as a table of positions.
Status broken_guard(const Graph& graph, const Guard& guard, const SymbolLookup& sizes);

}  // namespace rlx
