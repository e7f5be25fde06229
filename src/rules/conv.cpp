// SPDX-License-Identifier: Apache-2.0
// Convolutions: those that are products of patches, and what follows one.
#include "rules/products.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// ---- those whose windows lie side by side ----

// Whether windows of these sizes lie side by side in x, without padding, holes or groups.
static bool is_tiling(const Attrs& attrs, std::span<const Dim> window) {
  for (std::string_view spread : {"lhs_dilation", "rhs_dilation"})
    if (attrs.i64s(spread) != Axes(window.size(), 1)) return false;
  for (std::string_view pad : {"pad_lo", "pad_hi"})
    if (attrs.dims(pad) != std::vector<Dim>(window.size(), 0)) return false;
  const Axes& strides = attrs.i64s("strides");
  return attrs.i64("groups") == 1 && std::equal(window.begin(), window.end(), strides.begin(), strides.end(),
                                                [](const Dim& dim, int64_t stride) { return dim.is(stride); });
}

// conv(x, w) -> transpose(linear(patches of x, w)), as in the first layer of a vision transformer: each window becomes
// a row, each output channel a column
static Expr conv_of_patches(const Match& m) {
  Expr x = m.in(0), w = m.in(1);
  std::span<const Dim> window = std::span(w.dims()).subspan(2);
  if (!is_float(x.dtype()) || !m.is_resident(w) || m.is_resident(x)) return Expr();
  if (!is_tiling(m.attrs(), window)) return Expr();
  if (std::all_of(window.begin(), window.end(), [](const Dim& size) { return size.is(1); })) return Expr();
  auto axes = static_cast<int64_t>(window.size());
  std::vector<Dim> split{x.dim(0), x.dim(1)}, rows{x.dim(0)};
  Axes perm{0}, inside{1}, back{0, axes + 1};
  for (int64_t i = 0; i < axes; i++) {
    Dim size = window[static_cast<size_t>(i)];
    auto count = exact_div(x.dim(2 + i), size);
    if (!count) return m.miss("the windows do not fill x");
    split.insert(split.end(), {*count, size});
    rows.push_back(*count);
    perm.push_back(2 + 2 * i);
    inside.push_back(3 + 2 * i);
    back.push_back(1 + i);
  }
  perm.insert(perm.end(), inside.begin(), inside.end());
  rows.push_back(element_count(std::span(w.dims()).subspan(1)));
  Expr patches = reshape(transpose(reshape(x, split), perm), rows);
  Expr y = m.builder().op(Op::kLinear, {patches, reshape(w, {w.dim(0), rows.back()})}, {{"transpose_w", int64_t{1}}});
  return m.is_refused(y) ? m.miss("no kernel for the product of patches") : transpose(y, back);
}

// ---- what follows ----

// conv(x, w) + b -> conv_bias_act(x, w, b)
static Expr conv_with_bias(const Match& m, Expr y, Expr b) {
  Expr bias = channel_vector(m, y, b);
  if (!bias) return Expr();
  return m.builder().ops(Op::kConvBiasAct, {m.input(y, 0), m.input(y, 1), bias}, m.node(y).attrs.named())[0];
}

// Whether y is a convolution that can take up what follows it.
static bool is_unended_conv(const Match& m, Expr y) {
  if (is_half(y.dtype()) && !m.allows(close)) return false;  // more would be done before rounding
  return m.is(y, Op::kConv) || (m.is(y, Op::kConvBiasAct) && has_no_ending(m.node(y).attrs));
}

static Expr conv_followed_by(const Match& m, Expr y, Expr residual, const NamedAttrs& attrs) {
  std::vector<Expr> in{m.input(y, 0), m.input(y, 1), m.input(y, 2), residual};
  Expr fused = m.builder().ops(Op::kConvBiasAct, in, attrs)[0];
  return m.is_refused(fused) ? m.miss("no kernel for the convolution with what follows it") : fused;
}

// conv(x, w) + r -> conv_bias_act(x, w, -, r), if r has the shape of the sum
static Expr conv_with_residual(const Match& m) {
  for (size_t i : {0, 1}) {
    Expr y = m.in(i), r = m.in(1 - i);
    if (!is_unended_conv(m, y) || m.input(y, 3) || m.is_resident(r) || r.dims() != y.dims()) continue;
    if (m.take(y)) return conv_followed_by(m, y, r, m.node(y).attrs.named());
  }
  return Expr();
}

// act(conv(x, w)) -> conv_bias_act(x, w; act), and so with bounds
static Expr ended_conv(const Match& m) {
  Ending ending = ending_of(m);
  Expr y = ending.of;
  if (!y || (is_half(y.dtype()) && !m.allows(close))) return Expr();
  if (!m.is(y, Op::kConv) && !(m.is(y, Op::kConvBiasAct) && may_end(m.node(y).attrs, ending))) return Expr();
  if (!m.take(y)) return Expr();
  NamedAttrs attrs = m.is(y, Op::kConv) ? m.node(y).attrs.named() : ended(m.node(y).attrs, ending).named();
  if (m.is(y, Op::kConv)) attrs.insert(attrs.end(), ending.attrs.begin(), ending.attrs.end());
  return conv_followed_by(m, y, m.input(y, 3), attrs);
}

// A transposed convolution is one of x spread out, which takes up what follows.
static Expr conv_of_transposed(const Match& m) {
  const Node& node = m.node(m.anchor());
  if (!m.is_resident(m.in(1))) return Expr();
  std::vector<Expr> in;
  for (size_t i = 0; i < node.in.size(); i++) in.push_back(m.in(i));
  return decompose(m.builder(), m.graph().info(node), in, node.attrs)[0];
}

void add_conv_rules(RuleSet& rules) {
  Pattern x = any(), w = any(), b = resident(), conv = op(Op::kConv, {x, w});
  rules.add(close, "conv_of_patches", {Op::kConv}, conv_of_patches);
  rules.add(exact, "conv_of_transposed", {Op::kConvTranspose}, conv_of_transposed);
  rules.add(exact, "conv_bias", conv + b, [=](const Match& m) { return conv_with_bias(m, m[conv], m[b]); });
  const Reach convs{.needs = {Op::kConv, Op::kConvBiasAct}};
  rules.add(exact, "conv_residual", {Op::kAdd}, conv_with_residual, convs);
  rules.add(exact, "conv_act", ending_ops(), ended_conv, convs);
}

}  // namespace rlx
