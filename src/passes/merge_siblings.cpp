// SPDX-License-Identifier: Apache-2.0
// Products that share their left input become one: Q, K and V, gate and up. One pass over x instead of several, and
// wider panels.
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

Result<Graph> merge_siblings(Graph graph, PassContext& context) {
  static const RuleSet kRules{add_sibling_rules};
  RewriteOptions options = context.rewrite_options("merge-siblings");
  options.refuses = context.refuses;
  return rewrite(std::move(graph), kRules, options);
}

}  // namespace rlx
