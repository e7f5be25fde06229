// SPDX-License-Identifier: Apache-2.0
// Products with weights: linear, its bias, and how it ends.
#include "rules/products.h"
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

static bool is_bare(const Match& m, Expr product) {
  return m.node(product).in.size() == 2 && has_no_ending(m.node(product).attrs);
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
  Expr bias = m.has_shape(product) ? column_vector(product, b) : Expr();
  return bias ? m.rebuilt(product, {{2, bias}})[0] : Expr();
}

// act(linear(x, W, b)) -> linear(x, W, b; act), and so with bounds
static Expr ended_linear(const Match& m) {
  Ending ending = ending_of(m);
  if (!m.is(ending.of, Op::kLinear) || !may_end(m.node(ending.of).attrs, ending) || !m.take(ending.of)) return Expr();
  return m.rebuilt(ending.of, {}, ended(m.node(ending.of).attrs, ending))[0];
}

// transpose(linear(x, w)) + b -> transpose(linear(x, w, b)), if the transpose makes channels of the columns
static Expr transposed_linear_with_bias(const Match& m, Expr y, Expr product, Expr b) {
  Expr bias = channel_vector(m, y, b);
  const Axes& perm = m.node(y).attrs.i64s("perm");
  if (!bias || perm[1] + 1 != std::ssize(perm)) return Expr();
  return transpose(m.rebuilt(product, {{2, bias}})[0], perm);
}

void add_linear_rules(RuleSet& rules) {
  Pattern x = any(), w = any(), b = resident(), rows = through_views(x, keeps_rows);
  Pattern any_linear = op(Op::kLinear, {rows});
  Pattern bare = op(Op::kLinear, {x, w}).where("without a bias", is_bare);
  Pattern transposed = op(Op::kTranspose, {bare});
  rules.add(exact, "linear", {Op::kMatmul}, product_with_weight);
  rules.add(exact, "linear_rows", op(Op::kReshape, {any_linear}),
            [=](const Match& m) { return linear_of_rows(m, m[any_linear], m[x]); });
  rules.add(exact, "linear_bias", bare + b, [=](const Match& m) { return linear_with_bias(m, m[bare], m[b]); });
  rules.add(exact, "conv_bias", transposed + b,
            [=](const Match& m) { return transposed_linear_with_bias(m, m[transposed], m[bare], m[b]); });
  rules.add(exact, "linear_act", ending_ops(), ended_linear);
}

}  // namespace rlx
