// SPDX-License-Identifier: Apache-2.0
// Products of one left operand with the weights side by side, and slices of the result. Exact: no sum changes its
// order.
#include <algorithm>

#include "rules/rules.h"

namespace rlx {

static bool has_resident_weights(const Match& m, Expr product) {
  const Node& node = m.node(product);
  if (node.op != Op::kLinear || is_block(m.graph().type(node.in[1]).dtype)) return false;
  for (size_t i = 1; i < node.in.size(); i++)
    if (!m.is_static(m.input(product, i))) return false;
  return !m.is_static(m.input(product, 0));
}

// The products of x that differ from the anchor in their weights only, the anchor among them, in the order of the
// graph.
static std::vector<Expr> siblings(const Match& m) {
  const Node& first = m.node(m.anchor());
  std::vector<Expr> found;
  for (uint32_t user : m.users(m.in(0))) {
    Expr product = m.builder().wrap({user, 0});
    const Node& node = m.node(product);
    if (node.op == Op::kLinear && node.in[0] == first.in[0] && node.in.size() == first.in.size() &&
        node.attrs == first.attrs && has_resident_weights(m, product))
      found.push_back(product);
  }
  std::sort(found.begin(), found.end(), [](Expr a, Expr b) { return a.value() < b.value(); });
  return found;
}

// linear(x, A), linear(x, B) -> slices of linear(x, [A B])
static Expr merge_products(const Match& m) {
  if (!has_resident_weights(m, m.anchor())) return Expr();
  std::vector<Expr> products = siblings(m), weights, biases;
  if (products.size() < 2) return Expr();
  for (Expr product : products) {
    weights.push_back(m.input(product, 1));
    if (m.node(product).in.size() > 2) biases.push_back(m.input(product, 2));
  }
  std::vector<Expr> in{m.in(0), concat(weights, m.attrs().flag("transpose_w") ? 0 : 1)};
  if (!biases.empty()) in.push_back(concat(biases, 0));
  Expr whole = m.builder().add(m.graph().info(m.node(m.anchor())), in, m.attrs())[0], replacement;
  Dim at = 0;
  for (Expr product : products) {
    Expr part = slice(whole, static_cast<int64_t>(whole.rank()) - 1, at, at + product.dim(-1));
    at += product.dim(-1);
    if (product.value() == m.anchor().value())
      replacement = part;
    else
      m.also(product.value(), part);
  }
  return replacement;
}

// gated_act of the two halves of one product -> glu
static Expr halves_as_glu(const Match& m) {
  Expr gate = m.in(0), up = m.in(1);
  const Node &g = m.node(gate), &u = m.node(up);
  if (g.op != Op::kSlice || u.op != Op::kSlice || g.in[0] != u.in[0]) return Expr();
  Expr product = m.input(gate, 0);
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
  rules.add(exact, "merge_products", std::vector{Op::kLinear}, merge_products);
  rules.add(exact, "glu", std::vector{Op::kGatedAct}, halves_as_glu);
}

}  // namespace rlx
