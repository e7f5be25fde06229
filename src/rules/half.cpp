// SPDX-License-Identifier: Apache-2.0
// Half precision as exporters write it: a cast to f32 before an op that wants precision, a cast back behind it. A wide
// composite means just that, so it takes the halves itself.
#include "rules/rules.h"

namespace rlx {

// What a value was before it was widened; the value itself if it was not.
static Expr before_widening(const Match& m, Expr x, DType half) {
  if (!m.is(x, Op::kCast) || x.dtype() != DType::kF32) return x;
  Expr source = m.input(x, 0);
  return source.dtype() == half ? source : x;
}

// cast(C(cast(x, f32)), half) -> C(x), C wide: by its definition it casts so, and rounds once
static Expr narrow_composite(const Match& m) {
  DType half = m.anchor().dtype();
  Expr wide = m.in(0);
  const Node& node = m.node(wide);
  const OpInfo& info = m.graph().info(node);
  if (!is_half(half) || info.primitive() || !info.is(kWide) || wide.value().output != 0) return Expr();
  if (wide.dtype() != DType::kF32 || !m.is_inner(wide)) return Expr();
  const std::vector<Port>& ports = info.signature.in;
  std::vector<Expr> in;
  for (size_t i = 0; i < node.in.size(); i++) {
    Expr x = m.input(wide, i);
    bool is_typed = x && ports[std::min(i, ports.size() - 1)].letter == ports[0].letter;
    if (is_typed) x = before_widening(m, x, half);
    if (is_typed && x.dtype() != half) return m.miss("an operand was never a half");
    in.push_back(x);
  }
  Outputs outputs = m.builder().add(info, in, node.attrs);
  for (uint32_t i = 1; i < outputs.size(); i++) m.also({wide.value().node, i}, outputs[i]);
  return outputs[0];
}

void add_half_rules(RuleSet& rules) {
  rules.add(exact, "narrow_composite", std::vector{Op::kCast}, narrow_composite);
}

}  // namespace rlx
