// SPDX-License-Identifier: Apache-2.0
// Merges products that share their left input, such as those of Q, K and V, or of gate and up. So x is read once, and
// panels are wider.
#include "base/lasting.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

static const RuleSet& rules() {
  static const RuleSet& kRules = lasting([] { return RuleSet{add_sibling_rules}; });
  return kRules;
}

bool may_merge_siblings(const Graph& graph, const PassContext& context) {
  return rules().may_fire(graph.ops(), context.math);
}

Result<Graph> merge_siblings(Graph graph, PassContext& context) {
  RewriteOptions options = context.rewrite_options("merge-siblings");
  options.refuses = context.refuses;
  return rewrite(std::move(graph), rules(), options);
}

}  // namespace rlx
