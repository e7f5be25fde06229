// SPDX-License-Identifier: Apache-2.0
// Scores of attention, from the product q k' to the softmax. Each op of that chain is one link. Rules absorb link after
// link into the internal op `scores`, whose first input is the value that it stands for.
#pragma once

#include <optional>
#include <vector>

#include "rewrite/rule_set.h"

namespace rlx {

// value = softcap * tanh(scale * q k' / softcap) + bias, or scale * q k' + bias without a softcap. Where `mask` is
// false the value is `fill` or less.
struct Scores {
  Expr value;
  Expr q, k;      // [..., queries, d] and [..., keys, d]
  Expr mask;      // true: attend to this key; absent: attend to all
  Expr bias;      // absent: no bias
  Expr additive;  // the whole mask as the floats that were added; absent if a part of it was a boolean
  double scale = 1;
  double softcap = 0;           // 0: none
  double fill = 0;              // what the mask puts in place of a score: -inf or a huge negative number; 0: no mask
  bool stays_additive = false;  // further masks stay floats that are added: they are biases
};

// Takes a value (Match::take) and returns the scores that it stands for; nullopt if it is not a `scores` op, or has
// another use.
std::optional<Scores> take_scores(const Match& match, Expr value);

// A half as f32, for what is added to scores or multiplied with q: scores of halves may be finite where this by itself
// would overflow, and one rounding more of it would show.
Expr in_f32(Expr x);

// A mask or bias over axes `from` as one over axes `to`. The last two axes, queries and keys, are the same in both.
Expr regrouped(Expr term, std::span<const Dim> from, std::span<const Dim> to);

}  // namespace rlx
