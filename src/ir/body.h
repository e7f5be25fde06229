// SPDX-License-Identifier: Apache-2.0
// Which symbols of a body's graph are its own. All others are those of the graph around it.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// The symbols whose sizes are decided in a run by the contents of values of this graph. They have no meaning outside,
// even if the graph around it has a symbol of the same name.
std::vector<std::string> own_symbols(const Graph& graph);

// The symbols of the carries of a node's bodies: every trip sets them again. They have no meaning outside either.
const std::vector<std::string>& carried_symbols(const Attrs& attrs);

// Both.
std::vector<std::string> own_symbols(const Attrs& attrs, const Graph& body);

}  // namespace rlx
