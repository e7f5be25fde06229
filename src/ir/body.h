// SPDX-License-Identifier: Apache-2.0
// Which sizes in the graph of a body are its own. All others are those of the graph around it.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// The sizes that the contents of this graph's values decide: its nodes give them a value in a run, so they mean
// nothing outside, whatever a graph around it calls the same.
std::vector<std::string> own_symbols(const Graph& graph);

// The sizes that carries bring into the bodies of a node: every trip sets them anew. They mean nothing outside, too.
const std::vector<std::string>& carried_symbols(const Attrs& attrs);

// Both.
std::vector<std::string> own_symbols(const Attrs& attrs, const Graph& body);

}  // namespace rlx
