// SPDX-License-Identifier: Apache-2.0
// Replaces custom ops by the nodes that they stand for. It comes first: no other pass needs to know such ops, and calls
// of the host keep their order, because it copies the graph node by node.
#include <algorithm>

#include "ops/expr.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"

namespace rlx {

static bool is_custom(const Node& node) {
  return node.op == Op::kCustom || node.op == Op::kCustomFn;
}

static bool has_customs(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_custom);
}

static Result<Graph> inlined_once(const Graph& graph) {
  return with_replaced(graph, [&](GraphCopy& copy, uint32_t index) -> Result<std::vector<Value>> {
    const Node& node = graph.node(index);
    std::vector<Value> outputs;
    if (!is_custom(node)) return outputs;
    Builder builder(copy.to());
    std::vector<Expr> in;
    for (Value value : node.in) in.push_back(builder.wrap(copy.mapped(value)));
    for (Expr output : decompose(builder, graph.info(node), in, node.attrs)) outputs.push_back(output.value());
    RLX_TRY(builder.status());
    return outputs;
  });
}

// A body may use other custom ops. Each was there before the op that uses it, so this ends.
Result<Graph> inline_customs(Graph graph, PassContext&) {
  while (has_customs(graph)) graph = RLX_TRY(inlined_once(graph));
  return graph;
}

}  // namespace rlx
