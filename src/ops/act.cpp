// SPDX-License-Identifier: Apache-2.0
#include "ops/act.h"

#include <cassert>

namespace rlx {

static Expr relu(Expr x) {
  return unary(Op::kRelu, x);
}
static Expr softplus(Expr x) {
  return relu(x) + unary(Op::kLog1p, exp(-abs(x)));
}
static Expr clamp01(Expr x) {
  return minimum(maximum(x, scalar_like(x, 0)), scalar_like(x, 1));
}
static Expr zero_if_positive(Expr x) {
  return minimum(x, scalar_like(x, 0));
}
static Expr positive(Expr x) {
  return less(scalar_like(x, 0), x);
}

struct NamedAct {
  std::string_view name;
  Expr (*apply)(Expr x);
};

static constexpr NamedAct kActs[] = {
    {"none", [](Expr x) { return x; }},
    {"relu", relu},
    {"relu2", [](Expr x) { return relu(x) * relu(x); }},
    {"gelu", [](Expr x) { return unary(Op::kGelu, x); }},
    {"gelu_tanh",
     [](Expr x) {
       return x.builder().op(Op::kGelu, {x}, {{"approx", "tanh"}});
     }},
    {"quick_gelu",
     [](Expr x) {
       return x.builder().op(Op::kSilu, {x}, {{"beta", 1.702}});
     }},
    {"silu", [](Expr x) { return unary(Op::kSilu, x); }},
    {"sigmoid", [](Expr x) { return unary(Op::kSigmoid, x); }},
    {"tanh", [](Expr x) { return tanh(x); }},
    {"hard_sigmoid", [](Expr x) { return clamp01(0.2 * x + 0.5); }},
    {"hard_swish", [](Expr x) { return x * clamp01((1.0 / 6.0) * x + 0.5); }},
    {"leaky_relu", [](Expr x) { return where(less(x, scalar_like(x, 0)), 0.01 * x, x); }},
    {"elu", [](Expr x) { return where(positive(x), x, unary(Op::kExpm1, zero_if_positive(x))); }},
    {"softplus", softplus},
    {"mish", [](Expr x) { return x * tanh(softplus(x)); }},
};

Expr apply_act(Expr x, std::string_view act) {
  for (const NamedAct& row : kActs)
    if (row.name == act) return row.apply(x);
  assert(!"no such activation");
  return x;
}

}  // namespace rlx
