// SPDX-License-Identifier: Apache-2.0
// Products with weights (SPELLINGS.md 4): linear, its bias and activation, and siblings that share their left operand.
#include "ops/rules.h"
#include "rewrite/facts.h"

namespace rlx {

using namespace patterns;

// matmul(x, W) -> linear(x, W), W static and of rank 2; rows merged by a reshape stay merged inside linear
static Expr product_with_weight(const Match& m) {
  Expr x = m.in(0), w = m.in(1);
  const Attrs& attrs = m.attrs();
  if (!m.rewriter().is_static(w.value()) || w.rank() != 2 || m.rewriter().is_static(x.value())) return Expr();
  if (attrs.flag("transpose_a")) return m.miss("the left operand is transposed");
  if (!is_float(x.dtype()) || attrs.has("out_dtype")) return m.miss("not a float product of one dtype");
  return m.builder().op(Op::kLinear, {x, w}, {{"transpose_w", attrs.i64("transpose_b")}});
}

// reshape(linear(reshape(x))) where the rows were merged and are split again -> linear(x)
static Expr rows_unmerged(const Match& m) {
  Expr product = m.in(0);
  const Node& linear = m.node(product);
  if (linear.op != Op::kLinear || m.rewriter().used_elsewhere(product.value())) return Expr();
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
  if (!x || m.node(x).op != Op::kLinear || m.rewriter().used_elsewhere(x.value())) return nullptr;
  return m.node(x).attrs.is("act", "none") ? &m.node(x) : nullptr;
}

// linear(x, W) + b -> linear(x, W, b), b static and of shape [N]: a residual is no bias
static Expr bias_of_linear(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    const Node* linear = free_linear(m, m.in(i));
    Expr bias = m.in(1 - i);
    if (!linear || linear->in.size() > 2 || !m.rewriter().is_static(bias.value())) continue;
    std::vector<Dim> dims = bias.dims();
    while (dims.size() > 1 && dims[0].is(1)) dims.erase(dims.begin());
    if (dims.size() != 1 || !(dims[0] == m.in(i).dim(-1)) || !(m.in(i).dims() == m.anchor().dims())) continue;
    if (bias.rank() != 1) bias = reshape(bias, dims);
    return m.builder().add(m.graph().info(*linear),
                           std::vector{m.builder().wrap(linear->in[0]), m.builder().wrap(linear->in[1]), bias},
                           linear->attrs)[0];
  }
  return Expr();
}

// act(linear(x, W, b)) -> linear(x, W, b; act)
static Expr activation_of_linear(const Match& m, std::string_view act) {
  const Node* linear = free_linear(m, m.in(0));
  if (!linear) return Expr();
  std::vector<Expr> in;
  for (Value value : linear->in) in.push_back(present(value) ? m.builder().wrap(value) : Expr());
  return m.builder().add(m.graph().info(*linear), in, linear->attrs.with("act", std::string(act)))[0];
}

void add_linear_rules(RuleSet& rules) {
  rules.add(exact, "linear", std::vector{Op::kMatmul}, product_with_weight);
  rules.add(exact, "linear_rows", std::vector{Op::kReshape}, rows_unmerged);
  rules.add(exact, "linear_bias", std::vector{Op::kAdd}, bias_of_linear);
  rules.add(exact, "linear_gelu", std::vector{Op::kGelu}, [](const Match& m) {
    return activation_of_linear(m, m.attrs().is("approx", "tanh") ? "gelu_tanh" : "gelu");
  });
  rules.add(exact, "linear_silu", std::vector{Op::kSilu}, [](const Match& m) {
    double beta = m.attrs().f64("beta");
    return beta == 1 ? activation_of_linear(m, "silu") : beta == 1.702 ? activation_of_linear(m, "quick_gelu") : Expr();
  });
  for (auto [op, act] : {std::pair{Op::kRelu, "relu"}, {Op::kSigmoid, "sigmoid"}, {Op::kTanh, "tanh"}})
    rules.add(exact, std::string("linear_") + act, std::vector{op},
              [act = std::string(act)](const Match& m) { return activation_of_linear(m, act); });
}

}  // namespace rlx
