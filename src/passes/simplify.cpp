// SPDX-License-Identifier: Apache-2.0
// Canonicalizes and folds what `expand` has made. Joins chains of scalars, which `fuse` needs apart.
#include "base/lasting.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

Result<Graph> simplify(Graph graph, PassContext& context) {
  static const RuleSet& kRules = lasting([] { return RuleSet{add_normal_form_rules, add_scalar_chain_rules}; });
  RewriteOptions options = context.rewrite_options("simplify");
  options.refuses = context.refuses;
  options.merges = true;  // decompositions have much in common
  options.expands = [&](const Facts& facts, Value value) {
    return is_spelling(facts, value) && !context.supports(facts, value);
  };
  return fold_constants(RLX_TRY(rewrite(std::move(graph), kRules, options)), context);
}

}  // namespace rlx
