// SPDX-License-Identifier: Apache-2.0
// Canonicalize and fold once more, over what `expand` made, and join chains of scalars, which `fuse` needed apart.
#include <cmath>

#include "passes/pass.h"
#include "rules/numbers.h"
#include "rules/rules.h"

namespace rlx {

// (x + c1) + c2 -> x + (c1 + c2); (x * c1) * c2 -> x * (c1 * c2)
static Expr joined_scalars(const Match& m) {
  const Node& outer = m.node(m.anchor());
  if (!is_float(m.anchor().dtype())) return Expr();
  for (size_t i = 0; i < 2; i++) {
    auto c2 = m.splat(m.builder().wrap(outer.in[i]));
    const Node& inner = m.graph().node(outer.in[1 - i]);
    if (!c2 || inner.op != outer.op || !m.is_inner(m.in(1 - i))) continue;
    for (size_t k = 0; k < 2; k++) {
      auto c1 = m.splat(m.builder().wrap(inner.in[k]));
      Expr x = m.builder().wrap(inner.in[1 - k]);
      if (!c1 || !(x.dims() == m.anchor().dims())) continue;
      double joined = outer.op == Op::kAdd ? *c1 + *c2 : *c1 * *c2;
      // Nothing overflows or cancels on the way that did not before; and where x + c1 cancels, c2 must not have been
      // rounded away: the sum of the two is exact.
      bool is_exact = rounded_to(x.dtype(), joined) == joined && joined - *c1 == *c2;
      bool is_safe = outer.op == Op::kAdd ? *c1 * *c2 >= 0 && is_exact : is_moderate(*c1) && is_moderate(*c2);
      if (!is_safe || !std::isfinite(rounded_to(x.dtype(), joined))) return Expr();
      return binary(outer.op, x, x.builder().scalar(x.dtype(), joined));
    }
  }
  return Expr();
}

void add_scalar_chain_rules(RuleSet& rules) {
  rules.add(close, "joined_scalars", std::vector{Op::kAdd, Op::kMul}, joined_scalars, 3, {Op::kConstant});
}

Result<Graph> simplify(Graph graph, PassContext& context) {
  static const RuleSet kRules{add_view_rules, add_arithmetic_rules, add_mask_rules, add_scalar_chain_rules};
  RewriteOptions options = context.rewrite_options("simplify");
  options.refuses = context.refuses;
  options.expands = [&](const Facts& facts, Value value) {
    return facts.graph().info(facts.graph().node(value)).is(kSpelling) && !context.supports(facts, value);
  };
  return fold_constants(RLX_TRY(rewrite(std::move(graph), kRules, options)), context);
}

}  // namespace rlx
