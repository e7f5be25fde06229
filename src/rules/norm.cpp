// SPDX-License-Identifier: Apache-2.0
// Norms as exporters write them. First the bare norm is formed; then it absorbs gamma and beta.
#include <algorithm>

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
  rules.add(close, "norm_gamma", {Op::kMul}, [](const Match& m) { return absorb_parameter(m, 1); }, {.needs = norms});
  rules.add(close, "norm_beta", {Op::kAdd}, [](const Match& m) { return absorb_parameter(m, 2); }, {.needs = norms});
}

}  // namespace rlx
