// SPDX-License-Identifier: Apache-2.0
// Gates, and norms that absorb a residual sum: once norms and activations are whole, and before products absorb what
// follows them.
#include "ops/fused_act.h"
#include "rules/rules.h"

namespace rlx {

// norm(a + b) -> residual_norm(a, b), which returns the sum too. Only over the last axis, if nothing reads statistics.
static Expr residual_norm(const Match& m, Op fused) {
  const Node& node = m.node(m.anchor());
  Expr total = m.in(0);
  if (m.node(total).op != Op::kAdd) return Expr();
  if (is_half(total.dtype()) && !m.allows(close)) return Expr();  // the residual norm does not round the sum first
  int64_t axis = node.attrs.i64("axis"), rank = static_cast<int64_t>(total.rank());
  if (axis != rank - 1) return m.miss("the norm is not over the last axis alone");
  for (uint32_t i = 1; i < node.out.size(); i++)
    if (m.is_used({m.anchor().value().node, i})) return m.miss("a statistic is used");
  Expr a = m.input(total, 0), b = m.input(total, 1);
  if (!(a.dims() == total.dims()) || !(b.dims() == total.dims())) return m.miss("one side of the sum is broadcast");
  Outputs outputs = m.builder().ops(fused, {a, b, Expr(), m.in(1), m.in(2)}, {{"eps", node.attrs.f64("eps")}});
  m.offer(total.value(), outputs[1]);  // the sum, which the next residual reads
  return outputs[0];
}

// up * act(gate) -> gated_act(gate, up); act(g) * act(g) is relu2, not a gate
static Expr gated(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    Expr activated = m.in(i), up = m.in(1 - i);
    std::string_view act = act_of(m.node(activated));
    if (act.empty() || !m.take(activated)) continue;
    Expr gate = m.input(activated, 0);
    if (!(gate.dims() == up.dims())) return m.miss("gate and up differ in shape");
    if (m.is_resident(up)) return m.miss("up is a constant");
    return m.builder().op(Op::kGatedAct, {gate, up}, {{"act", std::string(act)}});
  }
  return Expr();
}

void add_gate_rules(RuleSet& rules) {
  rules.add(exact, "residual_layer_norm", {Op::kLayerNorm},
            [](const Match& m) { return residual_norm(m, Op::kResidualLayerNorm); });
  rules.add(exact, "residual_rms_norm", {Op::kRmsNorm},
            [](const Match& m) { return residual_norm(m, Op::kResidualRmsNorm); });
  rules.add(exact, "gated_act", {Op::kMul}, gated);
}

}  // namespace rlx
