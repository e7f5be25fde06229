// SPDX-License-Identifier: Apache-2.0
// What the rules about products and convolutions share: vectors with a number for each channel, and how a product ends.
#pragma once

#include "ops/fused_act.h"
#include "rewrite/rule_set.h"

namespace rlx {

// v as a vector with one number for each column of y, or for each channel of y[N, C, ..]; absent if it has another
// shape.
Expr column_vector(Expr y, Expr v);
Expr channel_vector(const Match& m, Expr y, Expr v);

// Whether nothing ends this product yet: it can take up what follows it.
bool has_no_ending(const Attrs& product);

// What the anchor makes of a value, as attributes of the product that made it: an activation or bounds. Without
// attributes it is neither.
struct Ending {
  Expr of;
  NamedAttrs attrs;
};
Ending ending_of(const Match& m);
std::vector<Op> ending_ops();  // of the anchors that may be one
// Bounds follow an activation, and `hi` follows `lo`.
bool may_end(const Attrs& product, const Ending& ending);
Attrs ended(const Attrs& product, const Ending& ending);

}  // namespace rlx
