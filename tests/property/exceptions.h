// SPDX-License-Identifier: Apache-2.0
// Where rules of grade close may change a value, and not only its rounding: the exceptions of semantics.md R2.
#pragma once

#include "ir/graph.h"

namespace rlx::test {

inline constexpr double kLeastNormal = 0x1p-126;  // of f32; a device may take what is less for 0

enum class Masks : uint8_t {
  kAsWritten,
  kLowest,   // one of a finite fill is lower than any score
  kAllEqual  // so is one of -inf, and they are equally low
};

struct Exceptions {
  Masks masks;
  bool drops_guards;   // weights that are NaN stay so
  bool moves_factors;  // one for each head multiplies q, one for each channel the weights, not the product
};

// Whether the node asks if weights of attention are NaN, as attention never does.
bool guards_weights(const Graph& graph, const Node& node);

// Whether it is a constant that is low enough to be a mask, and finite.
bool is_finite_fill(const Node& node);

// What the graph, and its bodies, mean with these exceptions made.
Result<Graph> with_exceptions(const Graph& graph, Exceptions made);

}  // namespace rlx::test
