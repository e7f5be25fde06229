// SPDX-License-Identifier: Apache-2.0
// What a sub-graph shares with the graph around it.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// The sizes that the contents of this graph's values decide: its nodes give them a value in a run, so they mean
// nothing outside, whatever a graph around it calls the same. All its other symbols are those of the graph around it.
std::vector<std::string> own_symbols(const Graph& graph);

}  // namespace rlx
