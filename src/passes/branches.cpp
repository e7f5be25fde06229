// SPDX-License-Identifier: Apache-2.0
// Replaces an `if` with a known condition by the nodes of the branch that it takes. This leaves fewer uses of what the
// branch read, and gives the nodes of the branch new operands. So both are canonicalized and folded again: a branch may
// end in a known `if` itself.
#include <algorithm>
#include <optional>

#include "passes/graph_copy.h"
#include "passes/pass.h"

namespace rlx {

// Whether the condition holds; nullopt if that is not known now.
static std::optional<bool> known_condition(const Graph& graph, const Node& node) {
  if (node.attrs.has("when")) {
    Interval when = graph.range(graph.resolved(node.attrs.dim("when")));
    return when.lo == when.hi ? std::optional(when.lo != 0) : std::nullopt;
  }
  const Tensor* condition = graph.constant(node.in[0]);
  return condition ? std::optional(condition->as<uint8_t>()[0] != 0) : std::nullopt;
}

// The branch that the node takes, if it is known and can be inlined. A branch that decides sizes, or an `if` that names
// sizes, is not inlined: these sizes would need other names.
static const Graph* known_branch(const Graph& graph, const Node& node) {
  if (node.op != Op::kIf || node.attrs.has("symbols") || node.attrs.has("chosen")) return nullptr;
  std::optional<bool> condition = known_condition(graph, node);
  if (!condition) return nullptr;
  const Graph& branch = *node.attrs.graph(*condition ? "then" : "else");
  return decided_sizes(branch).empty() ? &branch : nullptr;
}

static bool has_known_branch(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [&](const Node& node) { return known_branch(graph, node) != nullptr; });
}

static Result<Graph> inline_once(const Graph& graph) {
  return with_replaced(graph, [&](GraphCopy& copy, uint32_t index) -> Result<std::vector<Value>> {
    const Node& node = graph.node(index);
    const Graph* branch = known_branch(graph, node);
    if (!branch) return std::vector<Value>();
    GraphCopy inlined(*branch, copy.to());
    RLX_TRY(inlined.declare_used());  // symbols that a body declares and never uses stay out
    for (size_t i = 0; i < branch->inputs().size(); i++)
      inlined.set({branch->inputs()[i], 0}, copy.mapped(node.in[i + 1]));
    RLX_TRY(inlined.copy_rest());
    std::vector<Value> outputs;
    for (const GraphOutput& output : branch->outputs()) outputs.push_back(inlined.mapped(output.value));
    return outputs;
  });
}

Result<Graph> inline_branches(Graph graph, PassContext& context) {
  while (has_known_branch(graph)) {
    graph = RLX_TRY(canonicalize(RLX_TRY(inline_once(graph)), context));
    graph = RLX_TRY(fold_constants(std::move(graph), context));
  }
  return graph;
}

}  // namespace rlx
