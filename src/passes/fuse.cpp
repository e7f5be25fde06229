// SPDX-License-Identifier: Apache-2.0
// Forms the composites that this device has a kernel for. The stages build on one another: attention needs rope and the
// scores to be left alone by `linear`, a gate must be seen before its activation joins the product.
#include "ops/rules.h"
#include "passes/pass.h"

namespace rlx {

struct Stage {
  std::string_view name;
  std::vector<void (*)(RuleSet&)> rules;
};

Result<Graph> fuse_composites(const Graph& graph, PassContext& context) {
  static const Stage kStages[] = {
      {"norms and activations", {add_norm_rules, add_activation_rules}},
      {"rope", {add_rope_rules}},
      {"attention", {add_score_rules, add_view_rules}},
      {"attention layout", {add_attention_layout_rules, add_view_rules}},
      {"gates", {add_gate_rules}},
      {"linear", {add_linear_rules, add_view_rules}},
  };
  Result<Graph> current = graph;
  for (const Stage& stage : kStages) {
    RuleSet rules;
    for (auto add : stage.rules) add(rules);
    RewriteOptions options = context.rewrite_options("fuse");
    options.refuses = context.refuses;
    current = RLX_TRY(rewrite(*current, rules, options));
  }
  return current;
}

}  // namespace rlx
