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

static RewriteOptions options_in(const PassContext& context) {
  RewriteOptions options = context.rewrite_options("canonicalize");
  options.expands = is_spelling;
  options.merges = true;
  return options;
}

bool may_canonicalize(const Graph& graph, const PassContext& context) {
  return has_dead_node(graph, context) || may_change(graph, rules(), options_in(context));
}

Result<Graph> canonicalize(Graph graph, PassContext& context) {
  return rewrite(drop_dead(std::move(graph)), rules(), options_in(context));
}

}  // namespace rlx
