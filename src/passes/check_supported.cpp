// SPDX-License-Identifier: Apache-2.0
// Changes nothing. Fails if the device has no kernel for a node; the message names every such node, and why each kernel
// refused it.
#include "ir/facts.h"
#include "passes/pass.h"

namespace rlx {

Result<Graph> check_supported(Graph graph, PassContext& context) {
  Facts facts(graph);
  std::string refused;
  size_t count = 0;
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Node& node = graph.node(i);
    if (graph.info(node).is(kLeaf) || facts.is_resident({i, 0})) continue;
    std::string why = context.refuses ? context.refuses(facts, {i, 0}) : "no device";
    if (why.empty()) continue;
    refused += "\n  " + graph.describe(i) + ": " + why;
    count++;
  }
  if (count == 0) return graph;
  return Status(Code::kUnsupported, format("{} without a kernel{}{}:{}", plural(count, "node"),
                                           context.device.empty() ? "" : " on ", context.device, refused));
}

}  // namespace rlx
