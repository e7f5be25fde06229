// SPDX-License-Identifier: Apache-2.0
// Canonicalizes and folds what `expand` has made. Joins chains of scalars, which `fuse` needs apart.
#include "base/lasting.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

Result<Graph> simplify(Graph graph, PassContext& context) {
  static const RuleSet& kRules = lasting([] {
    return RuleSet{add_view_rules, add_arithmetic_rules, add_position_rules, add_scalar_chain_rules};
  });
  RewriteOptions options = context.rewrite_options("simplify");
  options.refuses = context.refuses;
  options.expands = [&](const Facts& facts, Value value) {
    return facts.graph().info(facts.graph().node(value)).is(kSpelling) && !context.supports(facts, value);
  };
  return fold_constants(RLX_TRY(rewrite(std::move(graph), kRules, options)), context);
}

}  // namespace rlx
