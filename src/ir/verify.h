// SPDX-License-Identifier: Apache-2.0
// The verifier: whether a graph is what its builder promises, checked again from its rows. It is the builder's own
// code: attributes are bound and types inferred once more, and both must come out as they are stored.
#pragma once

#include "ir/graph.h"

namespace rlx {

// Topological order, legal inputs and attributes, stored types equal to inferred ones, every guard that inference
// needs, leaves and outputs with names of their own; sub-graphs too. RLX_E_INTERNAL naming the node.
Status verify(const Graph& graph);

}  // namespace rlx
