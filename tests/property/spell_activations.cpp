// SPDX-License-Identifier: Apache-2.0
// Activations, gates, and what simple arithmetic is written as.
#include <cmath>

#include "draw.h"

namespace rlx::test {

namespace {

Expr activated(Draw& draw, Builder& builder) {
  return draw.any(builder, DTypeSet{draw.float_type()}, 0);
}

Expr half(Draw& draw, Expr x) {
  return draw.random.chance(50) ? x * draw.number(x, 0.5) : x / draw.number(x, 2);
}

Expr cubed(Draw& draw, Expr x) {
  return draw.random.chance(50) ? binary(Op::kPow, x, draw.number(x, 3)) : x * x * x;
}

// x * 0.5 * (1 + inner), in the orders that are seen.
Expr half_of_product(Draw& draw, Expr x, Expr inner) {
  Expr bracket = draw.random.chance(50) ? inner + draw.number(inner, 1) : 1.0 + inner;
  switch (draw.random.below(5)) {
    case 0: return half(draw, x) * bracket;
    case 1: return x * half(draw, bracket);
    case 2: return half(draw, x * bracket);
    case 3: return bracket * half(draw, x);
    default: return half(draw, bracket * x);
  }
}

Expr gelu_erf(Draw& draw, Builder& builder) {
  Expr x = activated(draw, builder);
  if (!x.valid()) return {};
  Expr inner = draw.random.chance(50)   ? x / draw.number(x, std::sqrt(2.0))
               : draw.random.chance(50) ? x * draw.number(x, std::sqrt(0.5))
                                        : x / sqrt(draw.number(x, 2));
  return half_of_product(draw, x, erf(inner));
}

Expr gelu_tanh(Draw& draw, Builder& builder) {
  Expr x = activated(draw, builder);
  if (!x.valid()) return {};
  double k = std::sqrt(2 / M_PI);
  Expr inner = draw.random.chance(50) ? k * (x + draw.number(x, 0.044715) * cubed(draw, x))
                                      : x * draw.number(x, k) * (1.0 + 0.044715 * x * x);
  return half_of_product(draw, x, tanh(inner));
}

Expr spelled_sigmoid(Draw& draw, Expr x) {
  switch (draw.random.below(4)) {
    case 0: return 1.0 / (1.0 + exp(-x));
    case 1: return unary(Op::kRecip, exp(-x) + 1.0);
    default: return unary(Op::kSigmoid, x);
  }
}

Expr silu(Draw& draw, Builder& builder) {
  static constexpr double kBetas[] = {1.702, 0.5, -1, 0, 1e-30, 3e38};
  Expr x = activated(draw, builder);
  if (!x.valid()) return {};
  Expr inner = draw.random.chance(70) ? x : x * draw.number(x, draw.random.pick(kBetas));
  Expr gate = spelled_sigmoid(draw, inner);
  return draw.random.chance(50) ? x * gate : gate * x;
}

Expr clamped(Draw& draw, Builder& builder) {
  Expr x = activated(draw, builder);
  if (!x.valid()) return {};
  double lo = draw.random.pick(std::array<double, 5>{0.0, -1.0, 0.5, -0.0, -INFINITY}),
         hi = draw.random.pick(std::array{6.0, 1.0, 0.0, 6.0});
  Expr shifted = draw.random.chance(50) ? x + draw.number(x, 3) : x;
  Expr y = draw.random.chance(50) ? minimum(maximum(shifted, lo), hi) : maximum(minimum(shifted, hi), lo);
  if (draw.random.chance(50)) return draw.random.chance(50) ? x * y / draw.number(x, 6) : x * (y * (1.0 / 6));
  return y;
}

Expr mish(Draw& draw, Builder& builder) {
  Expr x = activated(draw, builder);
  if (!x.valid()) return {};
  Expr softplus = draw.random.chance(50) ? log(1.0 + exp(x)) : log1p(exp(x));
  return x * tanh(softplus);
}

Expr piecewise(Draw& draw, Builder& builder) {
  Expr x = activated(draw, builder);
  if (!x.valid()) return {};
  Expr slope = draw.number(x, draw.random.pick(std::array{0.01, 0.0, -1.0, 1.0}));
  Expr low = draw.random.chance(50) ? x * slope : slope * expm1(x);
  return where(draw.random.chance(50) ? greater(x, 0) : less(scalar_like(x, 0), x), x, low);
}

// A chain of numbers: divisions, products and sums that rules may join, at the ends of the dtype's range.
Expr scalar_chain(Draw& draw, Builder& builder) {
  static constexpr double kNumbers[] = {
      0x1p-17,  0x1p-24, 2,     0.5,    3,       1.0 / 3, 0,    -0.0,    1,    -1,       0x1p127,  0x1p-126, 0x1p-149,
      INFINITY, NAN,     65504, 0x1p15, 0x1p-14, 1e-9,    -1e9, 0x1p-16, 6e-8, 0x1p-133, 0x1p1000, 0x1p-1074};
  Expr x = activated(draw, builder);
  for (int64_t count = draw.random.between(1, 4); count > 0 && x.valid(); count--) {
    Expr c = draw.number(x, draw.random.pick(kNumbers));
    switch (draw.random.below(9)) {
      case 0:
      case 1: x = x / c; break;
      case 2: x = c / x; break;
      case 3:
      case 4: x = x * c; break;
      case 5: x = x + c; break;
      case 6: x = draw.random.chance(50) ? x - c : c - x; break;
      case 7: x = binary(Op::kPow, x, c); break;
      default: x = draw.random.chance(50) ? maximum(x, c) : where(less(x, c), x, c);
    }
  }
  return x;
}

// Values that cancel, pass twice through a cast, or are compared with themselves.
Expr identities(Draw& draw, Builder& builder) {
  Expr x = activated(draw, builder);
  if (!x.valid()) return {};
  Expr zero = draw.number(x, draw.random.chance(50) ? 0.0 : -0.0), one = draw.number(x, 1);
  switch (draw.random.below(10)) {
    case 0: return x + zero;
    case 1: return x - zero;
    case 2: return x * zero;
    case 3: return zero - x;
    case 4: return x / x;
    case 5: return x - x;
    case 6: return cast(cast(x, draw.float_type()), x.dtype());
    case 7: return where(equal(x, x), x, zero);
    case 8: return logical_not(less(x, one));
    default: return -(-x) * one / one;
  }
}

constexpr Spelling kActivations[] = {gelu_erf,  gelu_tanh,    silu,         clamped,   mish,
                                     piecewise, scalar_chain, scalar_chain, identities};

}  // namespace

std::span<const Spelling> activation_spellings() {
  return kActivations;
}

}  // namespace rlx::test
