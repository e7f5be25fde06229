// SPDX-License-Identifier: Apache-2.0
// Products of one left operand become slices of one product, whose weights are theirs side by side. This is exact: no
// sum changes its order. A gate of two such slices becomes glu.
#include <algorithm>

#include "rules/columns.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

static bool has_resident_weights(const Match& m, Expr product) {
  const Node& node = m.node(product);
  if (node.op != Op::kLinear || is_block(m.graph().type(node.in[1]).dtype)) return false;
  for (size_t i = 1; i < node.in.size(); i++)
    if (!m.is_resident(m.input(product, i))) return false;
  return !m.is_resident(m.input(product, 0));
}

// The products that differ from the anchor in their weights only, and the anchor itself, in the order of the graph.
// None if very many nodes read the left operand: each of them may be such an anchor.
static std::vector<Expr> siblings(const Match& m) {
  constexpr size_t kMostReaders = 1024;
  const Node& first = m.node(m.anchor());
  std::vector<uint32_t> users = m.users(m.in(0), kMostReaders);
  if (users.size() == kMostReaders) users.clear();
  std::vector<Expr> found;
  for (uint32_t user : users) {
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
  Expr weight = concat(weights, m.attrs().flag("transpose_w") ? 0 : 1);
  Expr bias = biases.empty() ? Expr() : concat(biases, 0);
  Expr whole = m.rebuilt(m.anchor(), {{1, weight}, {2, bias}})[0], replacement;
  Dim at = 0;
  for (Expr product : products) {
    Expr part = slice(whole, static_cast<int64_t>(whole.rank()) - 1, at, at + product.dim(-1));
    at += product.dim(-1);
    if (product.value() == m.anchor().value())
      replacement = part;
    else
      m.offer(product.value(), part);
  }
  return replacement;
}

void add_sibling_rules(RuleSet& rules) {
  rules.add(exact, "merge_products", {Op::kLinear}, merge_products);
  // gated_act(one half of x, the other half) -> glu(x)
  Pattern x = any();
  auto add_glu = [&](ColumnHalf gate, ColumnHalf up) {
    rules.add(exact, "glu", op(Op::kGatedAct, {half_of(x, gate), half_of(x, up)}), [=](const Match& m) {
      int64_t gate_first = gate == ColumnHalf::kFirst;
      return m.builder().op(Op::kGlu, {m[x]},
                            {{"axis", int64_t{-1}}, {"act", m.attrs().str("act")}, {"gate_first", gate_first}});
    });
  };
  add_glu(ColumnHalf::kFirst, ColumnHalf::kSecond);
  add_glu(ColumnHalf::kSecond, ColumnHalf::kFirst);
}

}  // namespace rlx
