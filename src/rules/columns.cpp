// SPDX-License-Identifier: Apache-2.0
#include "rules/columns.h"

namespace rlx {

Pattern columns(const Pattern& x, std::string_view why, ColumnTest holds) {
  auto test = [holds = std::move(holds)](const Match& m, Expr part) {
    const Attrs& attrs = m.node(part).attrs;
    if (attrs.i64s("axes") != Axes{std::ssize(part.dims()) - 1}) return false;
    return holds(m.input(part, 0), part, attrs.dims("starts")[0], attrs.i64s("steps")[0]);
  };
  return patterns::op(Op::kSlice, {x}).where(why, test);
}

Pattern half_of(const Pattern& x, ColumnHalf half) {
  bool is_block = half == ColumnHalf::kFirst || half == ColumnHalf::kSecond;
  return columns(x, "a half of the columns", [=](Expr whole, Expr part, const Dim& start, int64_t step) {
    Dim first = half == ColumnHalf::kSecond ? part.dim(-1) : Dim(half == ColumnHalf::kOdd ? 1 : 0);
    return whole.dim(-1) == part.dim(-1) * 2 && start == first && step == (is_block ? 1 : 2);
  });
}

}  // namespace rlx
