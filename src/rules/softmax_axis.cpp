// SPDX-License-Identifier: Apache-2.0
// A softmax along an axis that is not the last, as one along the last axis.
#include "rules/rules.h"

namespace rlx {

// softmax along an axis with few elements behind it -> transpose(softmax(transpose(x))), of rows that lie in memory.
// With many elements behind, or few along it, whole columns at once are faster.
static Expr softmax_of_rows(const Match& m) {
  constexpr int64_t kMostBehind = 15, kFewest = 32;
  Expr x = m.in(0);
  auto axis = static_cast<size_t>(m.attrs().i64("axis"));
  Dim behind = element_count(std::span(x.dims()).subspan(axis + 1)), along = x.dims()[axis];
  if (axis + 1 == x.rank() || !behind.is_literal() || behind.literal() > kMostBehind) return Expr();
  if (!behind.is(1) && along.is_literal() && along.literal() < kFewest) return Expr();
  Axes to_last, back;
  auto rank = static_cast<int64_t>(x.rank()), from = static_cast<int64_t>(axis);
  for (int64_t i = 0; i < rank; i++) {
    if (i != from) to_last.push_back(i);
    back.push_back(i < from ? i : i == from ? rank - 1 : i - 1);
  }
  to_last.push_back(from);
  Expr y = m.rebuilt(m.anchor(), {{0, transpose(x, to_last)}}, m.attrs().with("axis", rank - 1))[0];
  return m.is_refused(y) ? m.miss("no kernel for rows") : transpose(y, back);
}

void add_softmax_axis_rules(RuleSet& rules) {
  rules.add(exact, "softmax_of_rows", {Op::kSoftmax, Op::kLogSoftmax}, softmax_of_rows, {.depth = 1});
}

}  // namespace rlx
