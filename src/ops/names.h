// SPDX-License-Identifier: Apache-2.0
// The names of nodes that are made in the place of another one.
#pragma once

#include <string>

#include "ir/graph.h"

namespace rlx {

// Gives the nodes from `first` on that read indices the name of the node for which they were made: a run names the node
// that meets an invalid index (semantics.md X2).
void name_readers_of_indices(Graph& graph, size_t first, const std::string& name);

}  // namespace rlx
