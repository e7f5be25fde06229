// SPDX-License-Identifier: Apache-2.0
// Comparisons of positions that the sizes decide (SPELLINGS.md 2 and 3): exporters write "no mask" as iota >= 0.
#include "ops/rules.h"
#include "rewrite/facts.h"

namespace rlx {

// a <= b or a < b over integers whose intervals do not overlap -> true or false
static Expr decided_comparison(const Match& m) {
  if (!is_integer(m.in(0).dtype())) return Expr();
  auto a = integer_range(m.graph(), m.in(0).value()), b = integer_range(m.graph(), m.in(1).value());
  if (!a || !b) return Expr();
  bool strict = m.node(m.anchor()).op == Op::kLt;
  bool always = strict ? a->hi < b->lo : a->hi <= b->lo, never = strict ? a->lo >= b->hi : a->lo > b->hi;
  if (!always && !never) return Expr();
  return broadcast_to(m.builder().scalar(DType::kBool, always ? 1 : 0), m.anchor().dims());
}

void add_mask_rules(RuleSet& rules) {
  rules.add(exact, "decided_comparison", std::vector{Op::kLt, Op::kLe}, decided_comparison);
}

}  // namespace rlx
