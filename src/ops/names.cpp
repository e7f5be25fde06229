// SPDX-License-Identifier: Apache-2.0
#include "ops/names.h"

#include <algorithm>

namespace rlx {

static bool reads_indices(const OpInfo& info) {
  return std::ranges::any_of(info.signature.in, [](const Port& port) { return port.letter.starts_with('X'); });
}

void name_readers_of_indices(Graph& graph, size_t first, const std::string& name) {
  for (auto node = static_cast<uint32_t>(first); node < graph.nodes().size() && !name.empty(); node++)
    if (graph.node(node).name.empty() && reads_indices(graph.info(graph.node(node)))) graph.set_name({node, 0}, name);
}

}  // namespace rlx
