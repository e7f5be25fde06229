// SPDX-License-Identifier: Apache-2.0
// Folding of one node, for the passes `fold` and `branches`.
#pragma once

#include <vector>

#include "base/grade.h"
#include "ir/graph.h"

namespace rlx {

// Adds the outputs of a node to the graph as constants, if its inputs are constants there. None if they are not, or if
// it is not worth while.
Result<std::vector<Value>> fold_node(Graph& graph, const Node& node, Grade math);

}  // namespace rlx
