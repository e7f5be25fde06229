// SPDX-License-Identifier: Apache-2.0
// Changes nothing. Fails if the device has no kernel for a node; the message names every such node, and why each kernel
// refused it.
#include "ir/facts.h"
#include "passes/pass.h"

namespace rlx {

// Empty if the device has a kernel for the node, or need not compute it.
static std::string why_refused(const Facts& facts, uint32_t node, const PassContext& context) {
  const Graph& graph = facts.graph();
  if (graph.info(graph.node(node)).is(kLeaf) || facts.is_resident({node, 0})) return {};
  return context.refuses ? context.refuses(facts, {node, 0}) : "no device";
}

bool has_unsupported(const Graph& graph, const PassContext& context) {
  Facts facts(graph);
  for (uint32_t i = 0; i < graph.nodes().size(); i++)
    if (!why_refused(facts, i, context).empty()) return true;
  return false;
}

Result<Graph> check_supported(Graph graph, PassContext& context) {
  Facts facts(graph);
  std::string refused;
  size_t count = 0;
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    std::string why = why_refused(facts, i, context);
    if (why.empty()) continue;
    refused += "\n  " + graph.describe(i) + ": " + why;
    count++;
  }
  if (count == 0) return graph;
  return Status(Code::kUnsupported, format("{} without a kernel{}{}:{}", plural(count, "node"),
                                           context.device.empty() ? "" : " on ", context.device, refused));
}

}  // namespace rlx
