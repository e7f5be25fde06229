// SPDX-License-Identifier: Apache-2.0
// Products that share their left operand become one with the weights side by side, and slices of its result: Q, K and
// V, gate and up. One pass over x instead of several, and wider panels. Exact: no sum changes its order.
#include <map>

#include "ops/expr.h"
#include "passes/pass.h"
#include "passes/rebuild.h"
#include "plan/phase.h"
#include "rules/rules.h"

namespace rlx {

// What must agree for two products to be one.
using Family = std::tuple<Value, bool, size_t, std::string>;  // x, transpose_w, number of inputs, activation

static std::map<Family, std::vector<uint32_t>> families(const Graph& graph) {
  std::map<Family, std::vector<uint32_t>> found;
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    const Node& node = graph.node(i);
    if (node.op != Op::kLinear || is_block(graph.type(node.in[1]).dtype)) continue;
    bool resident = true;
    for (size_t k = 1; k < node.in.size(); k++) resident &= is_resident(graph, node.in[k]);
    if (!resident || is_resident(graph, node.in[0])) continue;
    found[{node.in[0], node.attrs.flag("transpose_w"), node.in.size(), node.attrs.str("act")}].push_back(i);
  }
  std::erase_if(found, [](const auto& family) { return family.second.size() < 2; });
  return found;
}

static Status merge(const Graph& graph, const std::vector<uint32_t>& members, Rebuild& rebuild) {
  Builder builder(rebuild.graph());
  const Node& first = graph.node(members[0]);
  std::vector<Expr> weights, biases;
  for (uint32_t member : members) {
    const Node& node = graph.node(member);
    weights.push_back(builder.wrap(rebuild.mapped(node.in[1])));
    if (node.in.size() > 2) biases.push_back(builder.wrap(rebuild.mapped(node.in[2])));
  }
  bool transposed = first.attrs.flag("transpose_w");
  std::vector<Expr> in{builder.wrap(rebuild.mapped(first.in[0])), concat(weights, transposed ? 0 : 1)};
  if (!biases.empty()) in.push_back(concat(biases, 0));
  Expr product = builder.ops(Op::kLinear, in, first.attrs.named(), first.name)[0];
  Dim at = 0;
  for (uint32_t member : members) {
    Dim width = graph.node(member).out[0].dims.back();
    Expr part = slice(product, static_cast<int64_t>(product.rank()) - 1, at, at + width);
    at = at + width;
    rebuild.set(member, {part.value()});
  }
  return builder.take_status();
}

// gated_act of the two halves of one product -> glu
static Expr halves_as_glu(const Match& m) {
  Expr gate = m.in(0), up = m.in(1);
  const Node &g = m.node(gate), &u = m.node(up);
  if (g.op != Op::kSlice || u.op != Op::kSlice || g.in[0] != u.in[0]) return Expr();
  Expr product = m.builder().wrap(g.in[0]);
  int64_t last = static_cast<int64_t>(product.rank()) - 1;
  for (const Node* half : {&g, &u})
    if (!half->attrs.has("axes") || !half->attrs.has("steps") || half->attrs.i64s("axes") != Axes{last} ||
        half->attrs.i64s("steps")[0] != 1)
      return Expr();
  Dim width = gate.dim(-1);
  const Dim &from_g = g.attrs.dims("starts")[0], &from_u = u.attrs.dims("starts")[0];
  if (!(product.dim(-1) == width * 2)) return m.miss("the halves do not make the product");
  bool gate_first = from_g.is(0) && from_u == width, up_first = from_u.is(0) && from_g == width;
  if (!gate_first && !up_first) return m.miss("gate and up are not the two halves");
  return m.builder().op(Op::kGlu, {product},
                        {{"axis", int64_t{-1}}, {"act", m.attrs().str("act")}, {"gate_first", int64_t{gate_first}}});
}

void add_sibling_rules(RuleSet& rules) {
  rules.add(exact, "glu", std::vector{Op::kGatedAct}, halves_as_glu);
}

Result<Graph> merge_siblings(const Graph& graph, PassContext& context) {
  auto found = families(graph);
  Rebuild rebuild(graph);
  RLX_TRY(Status(rebuild.status()));
  // Weights first: a merged product stands where its first member stood, before the weights of the others might.
  for (uint32_t i = 0; i < graph.nodes().size(); i++)
    if (!rebuild.is_done(i) && is_resident(graph, {i, 0})) RLX_TRY(rebuild.copy(i));
  std::map<uint32_t, const std::vector<uint32_t>*> by_first;
  for (const auto& [family, members] : found) by_first[members[0]] = &members;
  for (uint32_t i = 0; i < graph.nodes().size(); i++) {
    if (rebuild.is_done(i)) continue;
    auto group = by_first.find(i);
    if (group == by_first.end()) {
      RLX_TRY(rebuild.copy(i));
      continue;
    }
    RLX_TRY(merge(graph, *group->second, rebuild));
    if (context.report)
      context.report->lines.push_back(
          {"merge-siblings", format("merge_{}_products", group->second->size()), graph.describe(i), ""});
  }
  Graph merged = RLX_TRY(rebuild.finish());
  RuleSet rules;
  add_sibling_rules(rules);
  RewriteOptions options = context.rewrite_options("merge-siblings");
  options.refuses = context.refuses;
  return rewrite(merged, rules, options);
}

}  // namespace rlx
