// SPDX-License-Identifier: Apache-2.0
// Folding of one node, for the passes `fold` and `branches`.
#pragma once

#include <vector>

#include "base/grade.h"
#include "ir/graph.h"

namespace rlx {

// The outputs of a node whose inputs are constants of the graph. None if they are not, or if it is not worth while.
std::vector<Tensor> folded(const Graph& graph, const Node& node, Grade math);

// Adds them to the graph as constants.
Result<std::vector<Value>> fold_node(Graph& graph, const Node& node, Grade math);

}  // namespace rlx
