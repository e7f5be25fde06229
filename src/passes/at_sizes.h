// SPDX-License-Identifier: Apache-2.0
// A graph with numbers in place of some of its sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// Infers every node again, so a size of 1 broadcasts and a condition on these sizes is decided. Names, the order of
// inputs, params and outputs, and the guards that the author of the graph declared stay. RLX_E_RANGE for a size outside
// its range, RLX_E_SHAPE if a node does not accept the sizes.
Result<Graph> at_sizes(const Graph& graph, const std::vector<std::pair<std::string, int64_t>>& sizes);

}  // namespace rlx
