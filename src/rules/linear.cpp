// SPDX-License-Identifier: Apache-2.0
// Products with weights: linear, its bias and activation, and the convolutions that are such products.
#include "ops/act.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// matmul(x, W) -> linear(x, W), W static and of rank 2; rows merged by a reshape stay merged inside linear
static Expr product_with_weight(const Match& m) {
  Expr x = m.in(0), w = m.in(1);
  const Attrs& attrs = m.attrs();
  if (!m.is_static(w) || w.rank() != 2 || m.is_static(x)) return Expr();
  if (attrs.flag("transpose_a")) return m.miss("the left operand is transposed");
  if (!is_float(x.dtype()) || attrs.has("out_dtype")) return m.miss("not a float product of one dtype");
  return m.builder().op(Op::kLinear, {x, w}, {{"transpose_w", attrs.i64("transpose_b")}});
}

// reshape(linear(reshape(x))) where the rows were merged and are split again -> linear(x)
static Expr rows_unmerged(const Match& m) {
  Expr product = m.in(0);
  const Node& linear = m.node(product);
  if (linear.op != Op::kLinear || !m.is_inner(product)) return Expr();
  const Node& rows = m.graph().node(linear.in[0]);
  if (rows.op != Op::kReshape) return Expr();
  Expr x = m.builder().wrap(rows.in[0]);
  if (x.rank() == 0 || !(x.dim(-1) == rows.out[0].dims.back())) return Expr();
  std::vector<Dim> dims = x.dims();
  dims.back() = product.dim(-1);
  if (dims != m.anchor().dims()) return Expr();
  std::vector<Expr> in{x};
  for (size_t i = 1; i < linear.in.size(); i++) in.push_back(m.builder().wrap(linear.in[i]));
  return m.builder().add(m.graph().info(linear), in, linear.attrs)[0];
}

static const Node* free_linear(const Match& m, Expr x) {
  if (!x || m.node(x).op != Op::kLinear || !m.is_inner(x)) return nullptr;
  return m.node(x).attrs.is("act", "none") ? &m.node(x) : nullptr;
}

static Expr with_bias(const Match& m, const Node& linear, Expr bias) {
  std::vector<Expr> in{m.builder().wrap(linear.in[0]), m.builder().wrap(linear.in[1]), bias};
  return m.builder().add(m.graph().info(linear), in, linear.attrs)[0];
}

// linear(x, W) + b -> linear(x, W, b), b static and of shape [N]: a residual is no bias
static Expr bias_of_linear(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    const Node* linear = free_linear(m, m.in(i));
    Expr bias = m.in(1 - i);
    if (!linear || linear->in.size() > 2 || !m.is_static(bias)) continue;
    std::vector<Dim> dims = bias.dims();
    while (dims.size() > 1 && dims[0].is(1)) dims.erase(dims.begin());
    if (dims.size() != 1 || !(dims[0] == m.in(i).dim(-1)) || !(m.in(i).dims() == m.anchor().dims())) continue;
    if (bias.rank() != 1) bias = reshape(bias, dims);
    return with_bias(m, *linear, bias);
  }
  return Expr();
}

// act(linear(x, W, b)) -> linear(x, W, b; act)
static Expr activation_of_linear(const Match& m) {
  std::string_view act = act_of(m.node(m.anchor()));
  const Node* linear = act.empty() ? nullptr : free_linear(m, m.in(0));
  if (!linear) return Expr();
  std::vector<Expr> in;
  for (Value value : linear->in) in.push_back(present(value) ? m.builder().wrap(value) : Expr());
  return m.builder().add(m.graph().info(*linear), in, linear->attrs.with("act", std::string(act)))[0];
}

// ---- convolutions whose windows lie side by side ----

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

// conv(x, w) -> transpose(linear(patches of x, w)), as the first layer of a vision transformer is meant: each window is
// a row, each output channel a column
static Expr conv_of_patches(const Match& m) {
  Expr x = m.in(0), w = m.in(1);
  std::span<const Dim> window = std::span(w.dims()).subspan(2);
  if (!is_float(x.dtype()) || !m.is_static(w) || m.is_static(x)) return Expr();
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
  return m.is_refused(y) ? m.miss("no kernel for the product of patches") : transpose(y, back);
}

// ---- bias of convolutions ----

// The vector that `bias` is, one static number for each channel of y; absent if it is not.
static Expr channel_bias(const Match& m, Expr y, Expr bias) {
  if (!m.is_static(bias) || !(y.dims() == m.anchor().dims()) || y.rank() < 2) return Expr();
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
    if ((node.op != Op::kConv && node.op != Op::kTranspose) || !m.is_inner(y)) continue;
    Expr bias = channel_bias(m, y, m.in(1 - i));
    if (!bias) continue;
    if (is_half(y.dtype()) && !m.allows(close)) return Expr();  // it adds before rounding
    Expr x = m.builder().wrap(node.in[0]);
    if (node.op == Op::kConv)
      return m.builder().ops(Op::kConvBiasAct, std::vector{x, m.builder().wrap(node.in[1]), bias},
                             node.attrs.named())[0];
    const Node* linear = free_linear(m, x);
    if (!linear || linear->in.size() > 2) continue;
    if (node.attrs.i64s("perm")[1] + 1 != std::ssize(x.dims())) continue;
    return transpose(with_bias(m, *linear, bias), node.attrs.i64s("perm"));
  }
  return Expr();
}

void add_linear_rules(RuleSet& rules) {
  rules.add(exact, "linear", std::vector{Op::kMatmul}, product_with_weight);
  rules.add(exact, "linear_rows", std::vector{Op::kReshape}, rows_unmerged);
  rules.add(exact, "linear_bias", std::vector{Op::kAdd}, bias_of_linear, 3, {Op::kLinear});
  rules.add(close, "conv_of_patches", std::vector{Op::kConv}, conv_of_patches);
  rules.add(exact, "conv_bias", std::vector{Op::kAdd}, bias_of_conv, 3, {Op::kConv, Op::kLinear});
  rules.add(exact, "linear_act", activation_ops(), activation_of_linear);
}

}  // namespace rlx
