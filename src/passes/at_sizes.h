// SPDX-License-Identifier: Apache-2.0
// A graph with numbers in place of some of its sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// Every node is inferred again, so a size of 1 broadcasts and a condition on these sizes is decided. Names, the order
// of inputs, params and outputs, and the conditions that the graph's author declared stay. RLX_E_RANGE for a size
// outside of its range, RLX_E_SHAPE where a node does not take the sizes.
Result<Graph> at_sizes(const Graph& graph, const std::vector<std::pair<std::string, int64_t>>& sizes);

}  // namespace rlx
