// SPDX-License-Identifier: Apache-2.0
// Drops nodes that no output, effect or guard needs. Inputs and params stay: they are part of the interface.
#include "base/contains.h"
#include "passes/pass.h"

namespace rlx {

bool has_dead_node(const Graph& graph, const PassContext&) {
  return contains(needed_nodes(graph), false);
}

Result<Graph> drop_dead_nodes(Graph graph, PassContext&) {
  return drop_dead(std::move(graph));
}

}  // namespace rlx
