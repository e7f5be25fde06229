// SPDX-License-Identifier: Apache-2.0
// Elementwise composites (OPS.md 5.1): each is its formula.
#include <cmath>
#include <numbers>

#include "ops/expr.h"

namespace rlx {

Outputs decompose_relu(const Inputs& in, const Attrs&) {
  return {maximum(in[0], scalar_like(in[0], 0))};
}
Outputs decompose_sigmoid(const Inputs& in, const Attrs&) {
  return {1.0 / (1.0 + exp(-in[0]))};
}

Outputs decompose_gelu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  if (attrs.is("approx", "none")) return {0.5 * x * (1.0 + erf(x * (std::numbers::sqrt2 / 2.0)))};
  Expr inner = x + 0.044715 * (x * x * x);
  return {0.5 * x * (1.0 + tanh(std::sqrt(2.0 / std::numbers::pi) * inner))};
}

}  // namespace rlx
