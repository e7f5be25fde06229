// SPDX-License-Identifier: Apache-2.0
// Canonicalizes and folds what `expand` has made. Joins chains of scalars, which `fuse` needs apart.
#include "base/lasting.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

static const RuleSet& rules() {
  static const RuleSet& kRules = lasting([] { return RuleSet{add_normal_form_rules, add_scalar_chain_rules}; });
  return kRules;
}

static RewriteOptions options_in(const PassContext& context) {
  RewriteOptions options = context.rewrite_options("simplify");
  options.refuses = context.refuses;
  options.merges = true;  // decompositions have much in common
  options.expands = [&](const Facts& facts, Value value) {
    return is_spelling(facts, value) && !context.supports(facts, value);
  };
  return options;
}

bool may_simplify(const Graph& graph, const PassContext& context) {
  return has_foldable(graph, context) || may_change(graph, rules(), options_in(context));
}

Result<Graph> simplify(Graph graph, PassContext& context) {
  return fold_constants(RLX_TRY(rewrite(std::move(graph), rules(), options_in(context))), context);
}

}  // namespace rlx
