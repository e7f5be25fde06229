// SPDX-License-Identifier: Apache-2.0
// One spelling per meaning, one node per value: composites that are only a way of writing are written out, and the
// exact and close normalisations applied, so that `fuse` meets each composite in few forms.
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

Result<Graph> canonicalize(const Graph& graph, PassContext& context) {
  RuleSet rules;
  add_view_rules(rules);
  add_arithmetic_rules(rules);
  add_mask_rules(rules);
  RewriteOptions options = context.rewrite_options("canonicalize");
  options.expands = [](const Graph& g, Value value) { return g.info(g.node(value)).is(kSpelling); };
  return rewrite(graph, rules, options);
}

}  // namespace rlx
