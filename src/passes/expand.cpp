// SPDX-License-Identifier: Apache-2.0
// Decomposes composites without a kernel on the device, until none is left. Values that depend on params alone stay:
// the prologue computes them by their definition.
#include <algorithm>

#include "base/lasting.h"
#include "ir/facts.h"
#include "passes/pass.h"

namespace rlx {

bool has_composite(const Graph& graph, const PassContext&) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) { return !graph.info(node).primitive(); });
}

Result<Graph> expand_composites(Graph graph, PassContext& context) {
  RewriteOptions options = context.rewrite_options("expand");
  options.expands = [&](const Facts& facts, Value value) {
    const Node& node = facts.graph().node(value);
    bool has_effects = !is_pure(facts.graph().info(node), node.attrs);  // it would stay, beside its decomposition
    return !has_effects && !facts.is_resident(value) && !context.supports(facts, value);
  };
  static const RuleSet& kNoRules = lasting([] { return RuleSet(); });
  return rewrite(std::move(graph), kNoRules, options);
}

}  // namespace rlx
