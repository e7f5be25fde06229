// SPDX-License-Identifier: Apache-2.0
// Activations as exporters write them.
#include <numbers>

#include "rules/rules.h"

namespace rlx {

using namespace patterns;

static Pattern gelu(const Pattern& x, const char* approx) {
  return op(Op::kGelu, {x}).with("approx", std::string(approx));
}

void add_activation_rules(RuleSet& rules) {
  Pattern x = any(), k = splat();
  const double inv_sqrt_2 = std::numbers::sqrt2 / 2, sqrt_2_by_pi = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
  // x * sigmoid(x) -> silu(x); x * sigmoid(k * x) -> silu(x; beta = k)
  rules.add(exact, "silu", product({op(Op::kSigmoid, {x}), x}), op(Op::kSilu, {x}));
  rules.add(close, "silu_beta", product({op(Op::kSigmoid, {x * k}), x}), [=](const Match& m) {
    return m.builder().op(Op::kSilu, {m[x]}, {{"beta", m.number(k)}});
  });
  // x * clamp(x + 3, 0, 6) / 6 -> hard_swish(x)
  Pattern shifted = x + 3.0, low = exactly(0), high = exactly(6);
  Pattern clamped = either({op(Op::kClamp, {shifted, low, high}), op(Op::kMin, {op(Op::kMax, {shifted, low}), high})});
  rules.add(close, "hard_swish_clamped", product({x, clamped}, 1.0 / 6), op(Op::kHardSwish, {x}));
  // x * (1 + erf(x / sqrt 2)) * 0.5 -> gelu(x), the 0.5 anywhere
  rules.add(close, "gelu", product({erf(product({x}, inv_sqrt_2)) + 1.0, x}, 0.5), gelu(x, "none"));
  // x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3))) * 0.5 -> gelu(x; tanh)
  Pattern power = op(Op::kPow, {x, exactly(3)});  // of halves
  Pattern cube = either({product({x, x, x}, 0.044715), product({power}, 0.044715)}),
          inner = product({x + cube}, sqrt_2_by_pi);
  rules.add(close, "gelu_tanh", product({tanh(inner) + 1.0, x}, 0.5), gelu(x, "tanh"));
  Pattern slope = product({x, x}, 0.044715) + 1.0;
  rules.add(close, "gelu_tanh_factored", product({tanh(product({x, slope}, sqrt_2_by_pi)) + 1.0, x}, 0.5),
            gelu(x, "tanh"));
}

}  // namespace rlx
