// SPDX-License-Identifier: Apache-2.0
// Forms the composites that this device has a kernel for. The stages build on one another. Attention is formed before
// `linear` could take its products; a gate is formed before its activation could join a product.
#include <algorithm>
#include <array>

#include "base/lasting.h"
#include "passes/pass.h"
#include "rules/rules.h"

namespace rlx {

static const auto& stages() {
  static const auto& kStages = lasting([] {
    return std::to_array<RuleSet>({
        RuleSet({add_norm_rules, add_derived_rules, add_activation_rules, add_half_rules}),
        RuleSet({add_rope_rules, add_half_rules}),
        RuleSet({add_attention_rules, add_score_rules, add_half_rules}, {add_view_rules}),
        RuleSet({add_small_derived_rules, add_gate_rules}),
        RuleSet({add_integer_rules, add_byte_rules, add_linear_rules, add_conv_rules, add_channel_rules,
                 add_softmax_axis_rules},
                {add_view_rules}),
    });
  });
  return kStages;
}

static bool has_stand_in(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [&](const Node& node) { return graph.info(node).is(kStandIn); });
}

bool may_fuse(const Graph& graph, const PassContext& context) {
  std::vector<bool> ops = graph.ops();
  auto may_fire = [&](const RuleSet& rules) { return rules.may_fire(ops, context.math); };
  return has_stand_in(graph) || std::ranges::any_of(stages(), may_fire) || has_equal_nodes(graph);
}

Result<Graph> fuse_composites(Graph graph, PassContext& context) {
  RewriteOptions options = context.rewrite_options("fuse");
  options.refuses = context.refuses;
  options.merges = true;  // passes since `canonicalize` have made constants and copies
  // At the end of a stage, scores that no attention has taken become the value that they stand for.
  RewriteOptions end = context.rewrite_options("fuse");
  end.expands = [](const Facts& facts, Value value) {
    return facts.graph().info(facts.graph().node(value)).is(kStandIn);
  };
  static const RuleSet& kNoRules = lasting([] { return RuleSet(); });
  for (const RuleSet& rules : stages()) {
    graph = RLX_TRY(rewrite(std::move(graph), rules, options));
    options.merges = false;  // a set of rules leaves no equal nodes
    if (has_stand_in(graph)) graph = RLX_TRY(rewrite(std::move(graph), kNoRules, end));
  }
  return graph;
}

}  // namespace rlx
