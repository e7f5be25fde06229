// SPDX-License-Identifier: Apache-2.0
// Norms as exporters write them. First the bare norm is formed; then it absorbs gamma, beta, and a residual sum.
#include <algorithm>

#include "ops/act.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// The first axis that `mean` reduces, counted from the end; nullopt unless it reduces trailing axes.
static std::optional<int64_t> first_trailing_axis(const Match& m, const Pattern& mean, size_t rank) {
  const Attrs& attrs = m.attrs(mean);
  Axes axes = attrs.i64s("axes");
  for (int64_t& axis : axes) axis -= static_cast<int64_t>(rank);
  for (size_t i = 0; i < axes.size(); i++)
    if (axes[i] != static_cast<int64_t>(i) - static_cast<int64_t>(axes.size())) return std::nullopt;
  return axes.empty() ? std::nullopt : std::optional(axes[0]);
}

// A resident parameter in the normalised shape, x.d[axis..], without leading axes of size 1; absent if it does not fit.
static Expr norm_parameter(const Match& m, Expr parameter, Expr x, int64_t axis) {
  if (!m.is_resident(parameter)) return Expr();
  std::vector<Dim> wanted(x.dims().end() + axis, x.dims().end());
  std::vector<Dim> dims = parameter.dims();
  while (dims.size() > wanted.size() && dims[0].is(1)) dims.erase(dims.begin());
  if (dims.empty() && m.splat(parameter)) return broadcast_to(parameter, wanted);
  if (dims != wanted) return m.miss("gamma or beta does not have the normalised shape");
  return parameter.dims() == wanted ? parameter : reshape(parameter, wanted);
}

// Whether the statistics are at least as precise as x.
static bool are_precise(const Match& m, const Pattern& x, std::initializer_list<Pattern> statistics) {
  return is_half(m[x].dtype()) ||
         std::none_of(statistics.begin(), statistics.end(), [&](const Pattern& it) { return is_half(m[it].dtype()); });
}

// c * rsqrt(mean(c*c) + eps), c = x - mean(x) -> layer_norm(x)
static Expr bare_layer_norm(const Match& m, const Pattern& x, const Pattern& mu, const Pattern& variance,
                            const Pattern& inv, const Pattern& eps) {
  auto axis = first_trailing_axis(m, mu, m[x].rank());
  if (!axis || axis != first_trailing_axis(m, variance, m[x].rank()))
    return m.miss("the axes are not the same trailing ones");
  if (m.number(eps) < 0) return m.miss("eps is negative");
  if (!are_precise(m, x, {mu, variance, inv})) return m.miss("statistics of halves");
  Outputs norm = m.builder().ops(Op::kLayerNorm, {m[x]}, {{"axis", *axis}, {"eps", m.number(eps)}});
  m.offer(m[mu].value(), norm[1]);
  m.offer(m[inv].value(), norm[2]);
  return norm[0];
}

static Expr bare_rms_norm(const Match& m, const Pattern& x, const Pattern& mean_square, const Pattern& inv,
                          const Pattern& eps) {
  auto axis = first_trailing_axis(m, mean_square, m[x].rank());
  if (!axis) return m.miss("the axes are not trailing ones");
  if (!are_precise(m, x, {mean_square, inv})) return m.miss("statistics of halves");
  Outputs norm = m.builder().ops(Op::kRmsNorm, {m[x]}, {{"axis", *axis}, {"eps", m.number(eps)}});
  m.offer(m[inv].value(), norm[1]);
  return norm[0];
}

// The norm that makes input i of the anchor, if nothing else uses it.
static const Node* norm_operand(const Match& m, size_t i) {
  Expr operand = m.in(i);
  const Node& node = m.node(operand);
  if (node.op != Op::kLayerNorm && node.op != Op::kRmsNorm) return nullptr;
  if (operand.value().output != 0 || !m.take(operand)) return nullptr;
  return &node;
}

// norm(x) * gamma -> norm(x, gamma); norm(x, gamma) + beta -> norm(x, gamma, beta)
static Expr absorb_parameter(const Match& m, size_t slot) {
  for (size_t i = 0; i < 2; i++) {
    const Node* norm = norm_operand(m, i);
    if (!norm || norm->in.size() > slot) continue;
    Expr x = m.input(m.in(i), 0);
    int64_t axis = norm->attrs.i64("axis") - static_cast<int64_t>(x.rank());
    if (!m.has_shape(m.in(i))) continue;
    Expr parameter = norm_parameter(m, m.in(1 - i), x, axis);
    if (!parameter) continue;
    return m.offer_all(m.in(i), m.rebuilt(m.in(i), {{slot, parameter}}));
  }
  return Expr();
}

// norm(a + b) -> residual_norm(a, b), which returns the sum too. Only over the last axis, if nothing reads statistics.
static Expr residual_norm(const Match& m, Op fused) {
  const Node& node = m.node(m.anchor());
  Expr total = m.in(0);
  if (m.node(total).op != Op::kAdd) return Expr();
  if (is_half(total.dtype()) && !m.allows(close)) return Expr();  // the residual norm does not round the sum first
  int64_t axis = node.attrs.i64("axis"), rank = static_cast<int64_t>(total.rank());
  if (axis != rank - 1) return m.miss("the norm is not over the last axis alone");
  for (uint32_t i = 1; i < node.out.size(); i++)
    if (m.uses({m.anchor().value().node, i})) return m.miss("a statistic is used");
  Expr a = m.input(total, 0), b = m.input(total, 1);
  if (!(a.dims() == total.dims()) || !(b.dims() == total.dims())) return m.miss("one side of the sum is broadcast");
  Outputs outputs = m.builder().ops(fused, {a, b, Expr(), m.in(1), m.in(2)}, {{"eps", node.attrs.f64("eps")}});
  m.offer(total.value(), outputs[1]);  // the sum, which the next residual reads
  return outputs[0];
}

void add_norm_rules(RuleSet& rules) {
  // If x is a half, any part of the formula may be in f32, between casts.
  Pattern x = any(), eps = splat();
  auto mean_of_square = [](const Pattern& x) { return mean(maybe_cast(x * x)); };
  auto inverse_root = [&](const Pattern& x) { return op(Op::kRsqrt, {maybe_cast(maybe_cast(x) + eps)}).shared(); };
  Pattern mu = mean(maybe_cast(x)).shared(), centred = x - maybe_cast(mu);
  Pattern variance = mean_of_square(maybe_cast(centred)), inv_std = inverse_root(variance);
  rules.add(close, "layer_norm", product({maybe_cast(inv_std), centred}),
            [=](const Match& m) { return bare_layer_norm(m, x, mu, variance, inv_std, eps); });
  Pattern mean_square = mean_of_square(maybe_cast(x)), inv_rms = inverse_root(mean_square);
  rules.add(close, "rms_norm", product({maybe_cast(inv_rms), x}),
            [=](const Match& m) { return bare_rms_norm(m, x, mean_square, inv_rms, eps); });
  const std::vector norms{Op::kLayerNorm, Op::kRmsNorm};
  rules.add(
      close, "norm_gamma", {Op::kMul}, [](const Match& m) { return absorb_parameter(m, 1); }, 3, norms);
  rules.add(
      close, "norm_beta", {Op::kAdd}, [](const Match& m) { return absorb_parameter(m, 2); }, 3, norms);
}

// up * act(gate) -> gated_act(gate, up); act(g) * act(g) is relu2, not a gate
static Expr gated(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    Expr activated = m.in(i), up = m.in(1 - i);
    std::string_view act = act_of(m.node(activated));
    if (act.empty() || activated.value() == up.value() || !m.take(activated)) continue;
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

// softmax along an axis with few elements behind it -> transpose(softmax(transpose(x))), of rows that lie in memory.
// With many elements behind, or few along it, whole columns at once are faster.
static Expr softmax_of_rows(const Match& m) {
  constexpr int64_t kMostBehind = 15, kFewest = 32;
  Expr x = m.in(0);
  auto axis = static_cast<size_t>(m.attrs().i64("axis"));
  Dim behind = element_count(std::span(x.dims()).subspan(axis + 1)), along = x.dims()[axis];
  if (axis + 1 == x.rank() || !behind.is_literal() || behind.literal() > kMostBehind) return Expr();
  if (!behind.is(1) && along.is_literal() && along.literal() < kFewest) return Expr();
  Axes to_last, back;
  auto rank = static_cast<int64_t>(x.rank()), from = static_cast<int64_t>(axis);
  for (int64_t i = 0; i < rank; i++) {
    if (i != from) to_last.push_back(i);
    back.push_back(i < from ? i : i == from ? rank - 1 : i - 1);
  }
  to_last.push_back(from);
  Expr y = m.rebuilt(m.anchor(), {{0, transpose(x, to_last)}}, m.attrs().with("axis", rank - 1))[0];
  return m.is_refused(y) ? m.miss("no kernel for rows") : transpose(y, back);
}

void add_row_rules(RuleSet& rules) {
  rules.add(exact, "softmax_of_rows", {Op::kSoftmax, Op::kLogSoftmax}, softmax_of_rows, 1);
}

}  // namespace rlx
