// SPDX-License-Identifier: Apache-2.0
// Replaces composites that the device has no kernel for by their decomposition, until none is left. What depends on
// params only stays: the prologue runs it by its definition.
#include "ops/expr.h"
#include "passes/pass.h"
#include "passes/rebuild.h"
#include "plan/phase.h"

namespace rlx {

static bool wants_expansion(const Graph& graph, uint32_t index, const PassContext& context) {
  const Node& node = graph.node(index);
  return !graph.info(node).primitive() && !context.supports(graph, {index, 0}) && !is_resident(graph, {index, 0});
}

static Status expand_node(const Graph& graph, uint32_t index, Builder& builder, Rebuild& rebuild) {
  const Node& node = graph.node(index);
  std::vector<Expr> in(std::max(node.in.size(), graph.info(node).signature.in.size()));
  for (size_t i = 0; i < node.in.size(); i++)
    if (present(node.in[i])) in[i] = builder.wrap(rebuild.mapped(node.in[i]));
  Outputs outputs = decompose(builder, graph.info(node), in, node.attrs);
  if (!builder.status().ok()) return Status(builder.status()).prefixed(graph.describe(index) + ": ");
  std::vector<Value> values;
  for (const Expr& output : outputs) values.push_back(output.value());
  rebuild.set(index, std::move(values));
  return {};
}

Result<Graph> expand_composites(const Graph& given, PassContext& context) {
  Graph graph = given;
  for (;;) {
    std::vector<bool> expands(graph.nodes().size(), false);
    bool any = false;
    for (uint32_t i = 0; i < graph.nodes().size(); i++) any |= expands[i] = wants_expansion(graph, i, context);
    if (!any) return graph;
    Rebuild rebuild(graph);
    RLX_TRY(Status(rebuild.status()));
    Builder builder(rebuild.graph());
    for (uint32_t i = 0; i < graph.nodes().size(); i++) {
      if (rebuild.is_done(i)) continue;
      if (expands[i] && context.report)
        context.report->lines.push_back({"expand", std::string(graph.info(graph.node(i)).name), graph.describe(i), {}});
      RLX_TRY(expands[i] ? expand_node(graph, i, builder, rebuild) : rebuild.copy(i));
    }
    graph = RLX_TRY(rebuild.finish());
  }
}

}  // namespace rlx
