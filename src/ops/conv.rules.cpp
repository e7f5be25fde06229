// SPDX-License-Identifier: Apache-2.0
// Convolutions: those that are products of matrices, and their bias.
#include "ops/rules.h"
#include "rewrite/facts.h"

namespace rlx {

using namespace patterns;

// ---- windows side by side ----

// Whether windows of these sizes lie side by side in x, without padding, holes or groups.
static bool is_tiling(const Attrs& attrs, std::span<const Dim> window) {
  for (std::string_view spread : {"lhs_dilation", "rhs_dilation"})
    if (attrs.has(spread) && attrs.i64s(spread) != Axes(window.size(), 1)) return false;
  for (std::string_view pad : {"pad_lo", "pad_hi"})
    if (attrs.has(pad) && attrs.dims(pad) != std::vector<Dim>(window.size(), 0)) return false;
  Axes strides = attrs.has("strides") ? attrs.i64s("strides") : Axes(window.size(), 1);
  return attrs.i64("groups") == 1 && std::equal(window.begin(), window.end(), strides.begin(), strides.end(),
                                                [](const Dim& dim, int64_t stride) { return dim.is(stride); });
}

// conv(x, w) -> transpose(linear(patches of x, w)), as the first layer of a vision transformer is meant: each window is
// a row, each output channel a column
static Expr conv_of_patches(const Match& m) {
  Expr x = m.in(0), w = m.in(1);
  std::span<const Dim> window = std::span(w.dims()).subspan(2);
  if (!is_float(x.dtype()) || !m.rewriter().is_static(w.value()) || m.rewriter().is_static(x.value())) return Expr();
  if (!is_tiling(m.attrs(), window)) return Expr();
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
  return m.rewriter().is_refused(y.value()) ? m.miss("no kernel for the product of patches") : transpose(y, back);
}

// ---- bias ----

// The vector that `bias` is, one static number for each channel of y; absent if it is not.
static Expr channel_bias(const Match& m, Expr y, Expr bias) {
  if (!m.rewriter().is_static(bias.value()) || !(y.dims() == m.anchor().dims()) || y.rank() < 2) return Expr();
  std::vector<Dim> per_channel(y.rank() - 1, Dim(1)), dims = bias.dims();
  per_channel[0] = y.dim(1);
  if (dims.size() == y.rank() && dims[0].is(1)) dims.erase(dims.begin());
  return dims == per_channel ? reshape(bias, {y.dim(1)}) : Expr();
}

// conv(x, w) + b -> conv_bias_act(x, w, b); transpose(linear(x, w)) + b -> transpose(linear(x, w, b)), channels second
static Expr bias_of_conv(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    Expr y = m.in(i);
    const Node& node = m.node(y);
    if ((node.op != Op::kConv && node.op != Op::kTranspose) || m.rewriter().used_elsewhere(y.value())) continue;
    Expr bias = channel_bias(m, y, m.in(1 - i));
    if (!bias) continue;
    if (is_half(y.dtype()) && !m.rewriter().allows(close)) return Expr();  // it adds before rounding
    Expr x = m.builder().wrap(node.in[0]);
    if (node.op == Op::kConv)
      return m.builder().ops(Op::kConvBiasAct, std::vector{x, m.builder().wrap(node.in[1]), bias},
                             node.attrs.named())[0];
    const Node& linear = m.node(x);
    bool is_free = linear.op == Op::kLinear && linear.in.size() == 2 && linear.attrs.is("act", "none") &&
                   !m.rewriter().used_elsewhere(x.value());
    if (!is_free || node.attrs.i64s("perm")[1] != static_cast<int64_t>(x.rank()) - 1) continue;
    std::vector<Expr> in{m.builder().wrap(linear.in[0]), m.builder().wrap(linear.in[1]), bias};
    return transpose(m.builder().add(m.graph().info(linear), in, linear.attrs)[0], node.attrs.i64s("perm"));
  }
  return Expr();
}

void add_conv_rules(RuleSet& rules) {
  rules.add(close, "conv_of_patches", std::vector{Op::kConv}, conv_of_patches);
  rules.add(exact, "conv_bias", std::vector{Op::kAdd}, bias_of_conv);
}

}  // namespace rlx
