// SPDX-License-Identifier: Apache-2.0
// Scores of attention while they are put together: every link of the chain from q k' to the softmax becomes part of the
// internal op `scores`, which still holds the value that it stands for.
#pragma once

#include <optional>
#include <vector>

#include "rewrite/rules.h"

namespace rlx {

// value = softcap * tanh(scale * q k' / softcap) + bias, or scale * q k' + bias without a softcap; `fill` or less where
// `mask` is false.
struct Scores {
  Expr value;
  Expr q, k;    // [..., queries, d] and [..., keys, d]
  Expr mask;    // true: attend; absent: to all
  Expr bias;    // absent: none
  Expr additive;  // the whole mask as the floats that were added; absent where a part of it was a boolean
  double scale = 1;
  double softcap = 0;         // 0: none
  double fill = 0;            // what the mask puts in place of a score: -inf or a huge negative number; 0: no mask
  bool stays_additive = false;  // further masks stay floats that are added: they are biases
};

// The scores that a value is; nullopt where it is none or has another use.
std::optional<Scores> scores_of(const Match& match, Expr value);

// A mask or bias over axes `from`, its last two those of queries and keys, over axes `to`: batch axes regrouped.
Expr regrouped(Expr term, std::span<const Dim> from, std::span<const Dim> to);

}  // namespace rlx
