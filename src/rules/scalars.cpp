// SPDX-License-Identifier: Apache-2.0
// Chains of scalars, (x + c1) + c2 and (x * c1) * c2, joined. `fuse` needs them apart, so only `simplify` runs these.
#include <cmath>

#include "rules/numbers.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// Whether (x + c1) + c2 may become x + (c1 + c2). The sum must be exact, so that no part of c2 is lost where x + c1
// cancels; and of one sign, so that the scalars do not cancel each other.
static bool may_be_added(DType dtype, double c1, double c2) {
  double sum = c1 + c2;
  return c1 * c2 >= 0 && std::isfinite(sum) && rounded_to(dtype, sum) == sum && sum - c1 == c2;
}

void add_scalar_chain_rules(RuleSet& rules) {
  Pattern c1 = splat(), c2 = splat();
  Pattern x = any().where("a float of the result's shape",
                          [](const Match& m, Expr x) { return is_float(x.dtype()) && m.has_shape(x); });
  // (x + c1) + c2 -> x + (c1 + c2)
  rules.add(close, "joined_scalars", (x + c1) + c2, [=](const Match& m) {
    bool may_join = may_be_added(m[x].dtype(), m.number(c1), m.number(c2));
    return may_join ? m[x] + (m.number(c1) + m.number(c2)) : Expr();
  });
  // (x * c1) * c2 -> x * (c1 * c2), unless a half would lose the product of two small scalars.
  rules.add(close, "joined_scalars", (x * c1) * c2, [=](const Match& m) {
    double product = m.number(c1) * m.number(c2);
    bool may_join = is_moderate(m.number(c1)) && is_moderate(m.number(c2)) && is_normal(m[x].dtype(), product);
    return may_join ? m[x] * product : Expr();
  });
}

}  // namespace rlx
