// SPDX-License-Identifier: Apache-2.0
// Forms the composites that this device has a kernel for. The stages build on one another: attention needs rope and the
// scores to be left alone by `linear`, a gate must be seen before its activation joins the product.
#include <map>

#include "passes/pass.h"
#include "passes/rebuild.h"
#include "rules/rules.h"

namespace rlx {

struct Stage {
  std::string_view name;
  std::vector<void (*)(RuleSet&)> rules;
};

static constexpr uint32_t kSum = 1;  // the output of a residual norm that is the sum

// The residual norm, if any, that makes the sum which each node is.
static std::map<uint32_t, uint32_t> norms_of_sums(const Graph& graph) {
  std::map<std::pair<Value, Value>, uint32_t> norms;
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Node& node = graph.node(i);
    if (node.op != Op::kResidualLayerNorm && node.op != Op::kResidualRmsNorm) continue;
    if (node.in.size() < 3 || !present(node.in[2])) norms.emplace(std::minmax(node.in[0], node.in[1]), i);
  }
  std::map<uint32_t, uint32_t> found;
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Node& node = graph.node(i);
    if (node.op != Op::kAdd) continue;
    auto norm = norms.find(std::minmax(node.in[0], node.in[1]));
    if (norm != norms.end()) found.emplace(i, norm->second);
  }
  return found;
}

static Status copy_after_inputs(const Graph& graph, uint32_t index, Rebuild& rebuild) {
  std::vector<uint32_t> waiting{index};  // each for those behind it
  while (!waiting.empty()) {
    uint32_t next = waiting.back();
    size_t count = waiting.size();
    for (Value in : graph.node(next).in)
      if (present(in) && !rebuild.is_done(in.node)) waiting.push_back(in.node);
    if (waiting.size() > count) continue;
    if (!rebuild.is_done(next)) RLX_TRY(rebuild.copy(next));
    waiting.pop_back();
  }
  return {};
}

// add(a, b), residual_norm(a, b) -> the norm's other output: the sum is read by the next residual too. Exact, and no
// rule, as two nodes become one.
static Result<Graph> share_sums(const Graph& graph, PassContext& context) {
  auto norms = norms_of_sums(graph);
  if (norms.empty()) return graph;
  Rebuild rebuild(graph);
  RLX_TRY(Status(rebuild.status()));
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    auto norm = norms.find(i);
    if (norm == norms.end()) {
      RLX_TRY(copy_after_inputs(graph, i, rebuild));
      continue;
    }
    RLX_TRY(copy_after_inputs(graph, norm->second, rebuild));
    rebuild.set(i, {rebuild.mapped({norm->second, kSum})});
    if (context.report) context.report->lines.push_back({"fuse", "residual_sum", graph.describe(i), ""});
  }
  return drop_dead(RLX_TRY(rebuild.finish()));
}

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
  return share_sums(*current, context);
}

}  // namespace rlx
