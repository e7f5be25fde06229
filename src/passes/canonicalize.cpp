// SPDX-License-Identifier: Apache-2.0
// Gives equal meanings one form, and equal values one node: expands composites that are only a name for their
// decomposition, and brings the rest into normal form. So `fuse` meets each composite in few forms.
#include "base/lasting.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

static const RuleSet& rules() {
  static const RuleSet& kRules = lasting([] { return RuleSet{add_normal_form_rules}; });
  return kRules;
}

bool may_canonicalize(const Graph& graph, const PassContext& context) {
  return has_composite(graph, context) || has_dead_node(graph, context) ||
         rules().may_fire(graph.ops(), context.math) || has_equal_nodes(graph);
}

Result<Graph> canonicalize(Graph graph, PassContext& context) {
  RewriteOptions options = context.rewrite_options("canonicalize");
  options.expands = is_spelling;
  options.merges = true;
  return rewrite(drop_dead(std::move(graph)), rules(), options);
}

}  // namespace rlx
