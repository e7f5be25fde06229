// SPDX-License-Identifier: Apache-2.0
#include "ops/fused_act.h"

#include "base/contains.h"
#include "base/lasting.h"

namespace rlx {

namespace {

struct Activation {
  std::string_view name;
  Op op;
  std::string_view attr = {};  // the attribute that differs from its default: a word or a number
  std::string_view word = {};
  double number = 0;
  bool is_squared = false;

  AttrValue value() const { return word.empty() ? AttrValue(number) : AttrValue(std::string(word)); }
  NamedAttrs attrs() const { return attr.empty() ? NamedAttrs() : NamedAttrs{{std::string(attr), value()}}; }
};

// In the order of the choices; "none" comes before them.
constexpr Activation kActivations[] = {
    {"relu", Op::kRelu},
    {.name = "relu2", .op = Op::kRelu, .is_squared = true},
    {"gelu", Op::kGelu},
    {"gelu_tanh", Op::kGelu, "approx", "tanh"},
    {"quick_gelu", Op::kSilu, "beta", {}, 1.702},
    {"silu", Op::kSilu},
    {"sigmoid", Op::kSigmoid},
    {"tanh", Op::kTanh},
    {"hard_sigmoid", Op::kHardSigmoid},
    {"hard_swish", Op::kHardSwish},
    {"leaky_relu", Op::kLeakyRelu},
    {"elu", Op::kElu},
    {"softplus", Op::kSoftplus},
    {"mish", Op::kMish},
};

// Files hold 1.702 rounded to the dtype of the node; kernels hold it in f32, or in f64.
bool is_same(const AttrValue& a, const AttrValue& b, DType dtype) {
  const double *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (!x || !y) return equal(a, b);
  DType held_in = is_half(dtype) || dtype == DType::kF64 ? dtype : DType::kF32;
  auto held = [&](double number) { return element_as_f64(*scalar_tensor(held_in, number), 0); };
  return held(*x) == held(*y);
}

bool is_at_node(const Activation& act, const Node& node) {
  if (act.op != node.op || act.is_squared) return false;
  NamedAttrs attrs = node.attrs.named();
  if (act.attr.empty()) return attrs.empty();
  return attrs.size() == 1 && attrs[0].first == act.attr && is_same(attrs[0].second, act.value(), node.out[0].dtype);
}

}  // namespace

std::string_view activation_choices() {
  static const std::string& kChoices = lasting([] {
    std::string all = "none";
    for (const Activation& act : kActivations) all += "|" + std::string(act.name);
    return all;
  });
  return kChoices;
}

std::vector<Op> activation_ops() {
  std::vector<Op> ops;
  for (const Activation& act : kActivations)
    if (!contains(ops, act.op)) ops.push_back(act.op);
  return ops;
}

Expr apply_act(Expr x, std::string_view act) {
  for (const Activation& it : kActivations) {
    if (it.name != act) continue;
    Expr y = x.builder().op(it.op, {x}, it.attrs());
    return it.is_squared ? unary(Op::kSquare, y) : y;
  }
  return x;
}

std::string_view act_of(const Node& node) {
  for (const Activation& act : kActivations)
    if (is_at_node(act, node)) return act.name;
  return {};
}

Expr apply_ending(Expr x, const Attrs& attrs) {
  bool has_slope = attrs.is("act", "leaky_relu");
  Expr y =
      has_slope ? x.builder().op(Op::kLeakyRelu, {x}, {{"alpha", attrs.f64("slope")}}) : apply_act(x, attrs.str("act"));
  if (attrs.has("lo")) y = maximum(y, attrs.f64("lo"));
  return attrs.has("hi") ? minimum(y, attrs.f64("hi")) : y;
}

NamedAttrs act_attrs_of(const Node& node) {
  if (node.op == Op::kLeakyRelu) return {{"act", std::string("leaky_relu")}, {"slope", node.attrs.f64("alpha")}};
  std::string_view act = act_of(node);
  return act.empty() ? NamedAttrs() : NamedAttrs{{"act", std::string(act)}};
}

bool has_act(const Attrs& attrs) {
  return !attrs.is("act", "none");
}

}  // namespace rlx
