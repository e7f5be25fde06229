// SPDX-License-Identifier: Apache-2.0
// The verifier checks a graph again from its rows. It uses the code of the builder: attributes are bound and types
// inferred once more, and both must equal the stored ones.
#pragma once

#include "ir/graph.h"

namespace rlx {

// Topological order, legal inputs and attributes, stored types equal to inferred ones, every guard that inference
// needs, leaves and outputs with names of their own; bodies too. RLX_E_INTERNAL naming the node; where inference
// asks the host (kOnHost) and the host fails, its failure.
Status verify(const Graph& graph);

}  // namespace rlx
