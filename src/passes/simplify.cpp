// SPDX-License-Identifier: Apache-2.0
// Canonicalize and fold once more, over what `expand` made, and join chains of scalars, which `fuse` needed apart.
#include <cmath>

#include "passes/pass.h"
#include "rewrite/facts.h"
#include "rules/rules.h"

namespace rlx {

// (x + c1) + c2 -> x + (c1 + c2); (x * c1) * c2 -> x * (c1 * c2)
static Expr joined_scalars(const Match& m) {
  const Node& outer = m.node(m.anchor());
  if (!is_float(m.anchor().dtype())) return Expr();
  for (size_t i = 0; i < 2; i++) {
    auto c2 = splat_value(m.graph(), outer.in[i]);
    const Node& inner = m.graph().node(outer.in[1 - i]);
    if (!c2 || inner.op != outer.op || m.rewriter().used_elsewhere(outer.in[1 - i])) continue;
    for (size_t k = 0; k < 2; k++) {
      auto c1 = splat_value(m.graph(), inner.in[k]);
      Expr x = m.builder().wrap(inner.in[1 - k]);
      if (!c1 || !(x.dims() == m.anchor().dims())) continue;
      double joined = outer.op == Op::kAdd ? *c1 + *c2 : *c1 * *c2;
      if (!std::isfinite(static_cast<float>(joined)) || (outer.op == Op::kMul && joined == 0)) return Expr();
      return binary(outer.op, x, x.builder().scalar(x.dtype(), joined));
    }
  }
  return Expr();
}

void add_scalar_chain_rules(RuleSet& rules) {
  rules.add(close, "joined_scalars", std::vector{Op::kAdd, Op::kMul}, joined_scalars);
}

Result<Graph> simplify(const Graph& graph, PassContext& context) {
  RuleSet rules;
  add_view_rules(rules);
  add_arithmetic_rules(rules);
  add_mask_rules(rules);
  add_scalar_chain_rules(rules);
  RewriteOptions options = context.rewrite_options("simplify");
  options.refuses = context.refuses;
  options.expands = [&](const Graph& g, Value value) {
    return g.info(g.node(value)).is(kSpelling) && !context.supports(g, value);
  };
  return fold_constants(RLX_TRY(rewrite(graph, rules, options)), context);
}

}  // namespace rlx
