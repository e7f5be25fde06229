// SPDX-License-Identifier: Apache-2.0
// Which nodes of a graph are needed.
#include <algorithm>

#include "ir/body.h"
#include "ir/symbols.h"

namespace rlx {

bool is_pure(const OpInfo& info, const Attrs& attrs) {
  if (!info.is(kPure) || !info.has_bodies) return info.is(kPure);
  return std::ranges::all_of(bodies_of(attrs), [](const Graph* body) {
    return std::ranges::all_of(body->nodes(), [&](const Node& node) { return is_pure(body->info(node), node.attrs); });
  });
}

// If a node and its decomposition both decide a size, the later one counts.
std::vector<bool> needed_nodes(const Graph& graph) {
  std::vector<bool> needed(graph.nodes().size(), false);
  ByName<uint32_t> decider_of;
  for (const DecidedSize& size : decided_sizes(graph)) decider_of[size.symbol] = size.node;
  auto need_decider = [&](const std::string& symbol) {
    if (auto found = decider_of.find(symbol); found != decider_of.end()) needed[found->second] = true;
  };
  for (const GraphOutput& output : graph.outputs()) needed[output.value.node] = true;
  for (uint32_t leaf : graph.inputs()) needed[leaf] = true;
  for (uint32_t leaf : graph.params()) needed[leaf] = true;
  for (const Guard& guard : graph.guards()) visit_symbols(guard, need_decider);
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.nodes()[i];
    if (!needed[i] && is_pure(graph.info(node), node.attrs)) continue;
    needed[i] = true;
    for (Value in : node.in)
      if (present(in)) needed[in.node] = true;
    if (!decider_of.empty()) visit_symbols(node, need_decider);
  }
  return needed;
}

Graph drop_dead(Graph graph) {
  std::vector<bool> needed = needed_nodes(graph);
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < needed.size(); i++)
    if (needed[i]) order.push_back(i);
  if (order.size() == needed.size()) return graph;
  return std::move(graph).reordered(order);
}

}  // namespace rlx
