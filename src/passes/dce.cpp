// SPDX-License-Identifier: Apache-2.0
// Drops what no output depends on. Inputs and params stay, as they are part of the interface; so do effects.
#include "passes/pass.h"
#include "passes/rebuild.h"

namespace rlx {

Result<Graph> drop_dead(const Graph& graph, PassContext&) {
  std::vector<bool> alive(graph.nodes().size(), false);
  for (const GraphOutput& output : graph.outputs()) alive[output.value.node] = true;
  for (size_t i = graph.nodes().size(); i-- > 0;) {
    const Node& node = graph.node(static_cast<uint32_t>(i));
    const OpInfo& info = graph.info(node);
    if (!info.is(kPure) && node.attrs.info() && info.name == "custom")
      alive[i] = alive[i] || node.attrs.flag("effects");
    if (alive[i])
      for (Value value : node.in)
        if (present(value)) alive[value.node] = true;
  }
  Rebuild rebuild(graph);
  RLX_TRY(Status(rebuild.status()));
  for (uint32_t i = 0; i < graph.nodes().size(); i++)
    if (alive[i] && !rebuild.is_done(i)) RLX_TRY(rebuild.copy(i));
  return rebuild.finish();
}

}  // namespace rlx
