// SPDX-License-Identifier: Apache-2.0
// Products with weights: linear, its bias and activation, and convolutions that are products.
#include "ops/act.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// matmul(x, W) -> linear(x, W), for a resident W of rank 2
static Expr product_with_weight(const Match& m) {
  Expr x = m.in(0), w = m.in(1);
  const Attrs& attrs = m.attrs();
  if (!m.is_resident(w) || w.rank() != 2 || m.is_resident(x)) return Expr();
  if (attrs.flag("transpose_a")) return m.miss("the left operand is transposed");
  if (!is_float(x.dtype()) || attrs.has("out_dtype")) return m.miss("not a float product of one dtype");
  return m.builder().op(Op::kLinear, {x, w}, {{"transpose_w", attrs.i64("transpose_b")}});
}

static bool has_no_bias(const Match& m, Expr product) {
  return m.node(product).in.size() == 2;
}

// reshape(linear(reshape(x))) -> linear(x), if one reshape merges rows and the other splits them again
static Expr linear_of_rows(const Match& m, Expr product, Expr x) {
  std::vector<Dim> dims = x.dims();
  if (dims.empty()) return Expr();
  dims.back() = product.dim(-1);
  return dims == m.anchor().dims() ? m.rebuilt(product, {{0, x}})[0] : Expr();
}

// linear(x, W) + b -> linear(x, W, b), for b of shape [N]
static Expr linear_with_bias(const Match& m, Expr product, Expr b) {
  std::vector<Dim> dims = b.dims();
  while (dims.size() > 1 && dims[0].is(1)) dims.erase(dims.begin());
  if (dims != std::vector<Dim>{product.dim(-1)} || !m.has_shape(product)) return Expr();
  return m.rebuilt(product, {{2, b.rank() == 1 ? b : reshape(b, dims)}})[0];
}

// act(linear(x, W, b)) -> linear(x, W, b; act)
static Expr activation_of_linear(const Match& m) {
  std::string_view act = act_of(m.node(m.anchor()));
  Expr product = m.in(0);
  if (act.empty() || !m.is(product, Op::kLinear) || !m.take(product)) return Expr();
  const Attrs& attrs = m.node(product).attrs;
  return attrs.is("act", "none") ? m.rebuilt(product, {}, attrs.with("act", std::string(act)))[0] : Expr();
}

// ---- convolutions whose windows lie side by side ----

// Whether windows of these sizes lie side by side in x, without padding, dilation or groups.
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

// ---- what follows convolutions ----

// The bias as a vector with one number for each channel of y; absent if it has another shape.
static Expr channel_bias(const Match& m, Expr y, Expr bias) {
  if (!m.has_shape(y) || y.rank() < 2) return Expr();
  if (is_half(y.dtype()) && !m.allows(close)) return Expr();  // the bias would be added before rounding
  std::vector<Dim> per_channel(y.rank() - 1, Dim(1)), dims = bias.dims();
  per_channel[0] = y.dim(1);
  if (dims.size() == y.rank() && dims[0].is(1)) dims.erase(dims.begin());
  return dims == per_channel ? reshape(bias, {y.dim(1)}) : Expr();
}

// conv(x, w) + b -> conv_bias_act(x, w, b)
static Expr conv_with_bias(const Match& m, Expr y, Expr b) {
  Expr bias = channel_bias(m, y, b);
  if (!bias) return Expr();
  return m.builder().ops(Op::kConvBiasAct, {m.input(y, 0), m.input(y, 1), bias}, m.node(y).attrs.named())[0];
}

// Whether y is a convolution that can absorb the op that follows it.
static bool is_open_conv(const Match& m, Expr y) {
  if (is_half(y.dtype()) && !m.allows(close)) return false;  // more would be computed before rounding
  return m.is(y, Op::kConv) || (m.is(y, Op::kConvBiasAct) && m.node(y).attrs.is("act", "none"));
}

static Expr conv_followed_by(const Match& m, Expr y, Expr residual, std::string_view act) {
  const Node& node = m.node(y);
  std::vector<Expr> in{m.input(y, 0), m.input(y, 1), Expr(), residual};
  if (node.in.size() > 2 && present(node.in[2])) in[2] = m.input(y, 2);
  NamedAttrs attrs = node.attrs.named();
  attrs.emplace_back("act", std::string(act));
  Expr fused = m.builder().ops(Op::kConvBiasAct, in, attrs)[0];
  return m.is_refused(fused) ? m.miss("no kernel for the convolution with what follows it") : fused;
}

static bool has_residual(const Match& m, Expr y) {
  const Node& node = m.node(y);
  return node.in.size() > 3 && present(node.in[3]);
}

// conv(x, w) + r -> conv_bias_act(x, w, -, r), if r has the shape of the sum
static Expr conv_with_residual(const Match& m) {
  for (size_t i : {0, 1}) {
    Expr y = m.in(i), r = m.in(1 - i);
    if (!is_open_conv(m, y) || has_residual(m, y) || m.is_resident(r) || r.dims() != y.dims()) continue;
    if (m.take(y)) return conv_followed_by(m, y, r, "none");
  }
  return Expr();
}

// act(conv(x, w)) -> conv_bias_act(x, w; act)
static Expr activation_of_conv(const Match& m) {
  std::string_view act = act_of(m.node(m.anchor()));
  Expr y = m.in(0);
  if (act.empty() || !is_open_conv(m, y) || !m.take(y)) return Expr();
  return conv_followed_by(m, y, has_residual(m, y) ? m.input(y, 3) : Expr(), act);
}

// transpose(linear(x, w)) + b -> transpose(linear(x, w, b)), if the transpose makes channels of the columns
static Expr turned_linear_with_bias(const Match& m, Expr y, Expr product, Expr b) {
  Expr bias = channel_bias(m, y, b);
  const Axes& perm = m.node(y).attrs.i64s("perm");
  if (!bias || perm[1] + 1 != std::ssize(perm)) return Expr();
  return transpose(m.rebuilt(product, {{2, bias}})[0], perm);
}

void add_linear_rules(RuleSet& rules) {
  Pattern x = any(), w = any(), b = resident(), rows = through_views(x, keeps_rows);
  Pattern any_linear = op(Op::kLinear, {rows}), conv = op(Op::kConv, {x, w});
  Pattern bare = op(Op::kLinear, {x, w}).with("act", std::string("none")).where("without a bias", has_no_bias);
  Pattern turned = op(Op::kTranspose, {bare});
  rules.add(exact, "linear", std::vector{Op::kMatmul}, product_with_weight);
  rules.add(exact, "linear_rows", op(Op::kReshape, {any_linear}),
            [=](const Match& m) { return linear_of_rows(m, m[any_linear], m[x]); });
  rules.add(exact, "linear_bias", bare + b, [=](const Match& m) { return linear_with_bias(m, m[bare], m[b]); });
  rules.add(close, "conv_of_patches", std::vector{Op::kConv}, conv_of_patches);
  rules.add(exact, "conv_bias", conv + b, [=](const Match& m) { return conv_with_bias(m, m[conv], m[b]); });
  rules.add(exact, "conv_bias", turned + b,
            [=](const Match& m) { return turned_linear_with_bias(m, m[turned], m[bare], m[b]); });
  rules.add(exact, "conv_residual", std::vector{Op::kAdd}, conv_with_residual);
  rules.add(exact, "linear_act", activation_ops(), activation_of_linear);
  rules.add(exact, "conv_act", activation_ops(), activation_of_conv);
}

}  // namespace rlx
