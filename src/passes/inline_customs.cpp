// SPDX-License-Identifier: Apache-2.0
// Replaces custom ops by the nodes that they stand for. It comes first: no other pass needs to know such ops, and calls
// of the host keep their order, because it copies the graph node by node.
#include "passes/inline_customs.h"

#include <algorithm>

#include "ir/body.h"
#include "ops/custom.h"
#include "ops/expr.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"

namespace rlx {

static bool is_custom(const Node& node) {
  return node.op == Op::kCustom || node.op == Op::kCustomFn;
}

bool has_customs(const Graph& graph, const PassContext&) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_custom);
}

// The nodes that a custom op stands for, in the copy. The one that gives its first output has its name.
static Result<std::vector<Value>> inlined(GraphCopy& copy, const Graph& graph, const Node& node) {
  Builder builder(copy.to());
  size_t before = copy.to().nodes().size();
  std::vector<Expr> in;
  for (Value value : node.in) in.push_back(builder.wrap(copy.mapped(value)));
  std::vector<Value> outputs;
  for (Expr output : decompose(builder, graph.info(node), in, node.attrs)) outputs.push_back(output.value());
  RLX_TRY(builder.status());
  bool is_new = !outputs.empty() && outputs[0].node >= before;
  if (is_new && copy.to().node(outputs[0]).name.empty()) copy.to().set_name(outputs[0], node.name);
  return outputs;
}

static Result<Graph> with_inlined(const Graph& graph, bool (*is_inlined)(const Node&)) {
  return with_replaced(graph, [&](GraphCopy& copy, uint32_t index) -> Result<std::vector<Value>> {
    const Node& node = graph.node(index);
    if (!is_inlined(node)) return std::vector<Value>();
    return inlined(copy, graph, node);
  });
}

// The body of an op has no other body in it, but a function may be nested in a function.
Result<Graph> inline_customs(Graph graph, PassContext& context) {
  while (has_customs(graph, context)) graph = RLX_TRY(with_inlined(graph, is_custom));
  return graph;
}

// ---- bodies that use bodies ----

static constexpr size_t kMaxNodes = size_t{1} << 20;

static bool has_body(const Node& node) {
  return node.op == Op::kCustom && custom_op(node.attrs).body;
}

// The nodes of a graph and of the graphs in it, with those of bodies where they are used. It stops above kMaxNodes.
static size_t count_nodes(const Graph& graph) {
  size_t count = 0;
  for (const Node& node : graph.nodes()) {
    count += has_body(node) ? count_nodes(*custom_op(node.attrs).body) : 1;
    for (const Graph* inner : bodies_of(node.attrs)) count += count_nodes(*inner);
    if (count > kMaxNodes) break;
  }
  return count;
}

static bool uses_bodies(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return has_body(node) ||
           std::ranges::any_of(bodies_of(node.attrs), [](const Graph* inner) { return uses_bodies(*inner); });
  });
}

// The guards of nodes that are gone: no inference adds them again, so they become conditions of the graph itself.
static Result<Graph> with_guards_of_its_own(const Graph& graph) {
  Graph made(graph.name(), &graph.table());
  GraphCopy copy(graph, made);
  for (const auto& [symbol, range] : graph.symbols()) RLX_TRY(made.declare_symbol(symbol, range));
  for (const Guard& guard : graph.guards())
    RLX_TRY(made.declare_guard({guard.relation, guard.a, guard.b, guard.where}));
  RLX_TRY(copy.copy_all());
  return made;
}

static Result<Graph> flattened(const Graph& graph) {
  if (!uses_bodies(graph)) return graph;
  Graph made = RLX_TRY(with_inlined(graph, has_body));
  for (uint32_t node = 0; node < made.nodes().size(); node++) {
    const OpInfo& info = made.info(made.node(node));
    for (size_t i = 0; i < info.attrs.size(); i++)
      if (auto* inner = std::get_if<std::shared_ptr<const Graph>>(&made.node(node).attrs.values()[i]); inner && *inner)
        made.set_attr(node, info.attrs[i].name,
                      std::make_shared<const Graph>(RLX_TRY(with_sizes_of(**inner, RLX_TRY(flattened(**inner))))));
  }
  return with_guards_of_its_own(made);
}

Result<Graph> with_bodies_in_place(const Graph& graph) {
  if (count_nodes(graph) > kMaxNodes)
    return Status(Code::kUnsupported, format("with the bodies that it uses it has more than {} nodes", kMaxNodes));
  return flattened(graph);
}

}  // namespace rlx
