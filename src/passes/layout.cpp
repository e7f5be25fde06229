// SPDX-License-Identifier: Apache-2.0
// Chooses the order of axes in memory: transposes and splits around attention and rope become their attribute `layout`,
// so these ops read the results of the products in place. With `layout=plain` nothing changes, and heads come before
// positions.
#include "base/lasting.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

static const RuleSet& rules() {
  static const RuleSet& kRules = lasting([] { return RuleSet({add_attention_layout_rules}, {add_view_rules}); });
  return kRules;
}

bool may_choose_layouts(const Graph& graph, const PassContext& context) {
  return !context.plain_layout && rules().may_fire(graph.ops(), context.math);
}

Result<Graph> choose_layouts(Graph graph, PassContext& context) {
  if (context.plain_layout) return graph;
  RewriteOptions options = context.rewrite_options("layout");
  options.refuses = context.refuses;
  return rewrite(std::move(graph), rules(), options);
}

}  // namespace rlx
