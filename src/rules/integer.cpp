// SPDX-License-Identifier: Apache-2.0
// Products of quantised numbers: what ONNX's MatMulInteger and its like become, with what follows them.
#include <optional>

#include "rules/rules.h"

namespace rlx {

using namespace patterns;

static bool is_eight_bit(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8;
}

// 8-bit numbers as i32, less their zero point. Other products may read them, too.
struct Centred {
  Expr q, zero;
};

static Expr widened_from(const Match& m, Expr x) {
  if (!x || !m.is(x, Op::kCast) || x.dtype() != DType::kI32) return Expr();
  Expr q = m.input(x, 0);
  return is_eight_bit(q.dtype()) ? q : Expr();
}

static std::optional<Centred> centred(const Match& m, Expr x) {
  if (Expr q = widened_from(m, x)) return Centred{q, Expr()};
  if (m.is(x, Op::kSub))
    if (Expr q = widened_from(m, m.input(x, 0))) return Centred{q, m.input(x, 1)};
  if (m.is(x, Op::kAdd))  // as constants are subtracted
    for (size_t i = 0; i < 2; i++)
      if (Expr q = widened_from(m, m.input(x, i)); q && m.is_resident(m.input(x, 1 - i)))
        return Centred{q, -m.input(x, 1 - i)};
  return std::nullopt;
}

static bool is_one_number(Expr x) {
  return element_count(x.dims()).is(1);
}

// A scalar, or one number for each of `columns`; absent where it is neither.
static Expr by_column(Expr x, const Dim& columns) {
  if (is_one_number(x)) return reshape(x, {});
  for (size_t i = 0; i + 1 < x.rank(); i++)
    if (!x.dims()[i].is(1)) return Expr();
  return x.dim(-1) == columns ? reshape(x, {columns}) : Expr();
}

// matmul(a - za, b - zb) of widened 8-bit numbers -> integer_matmul(a, b, za, zb)
static Expr product_of_integers(const Match& m) {
  const Attrs& attrs = m.attrs();
  if (m.anchor().dtype() != DType::kI32 || attrs.flag("transpose_a") || attrs.flag("transpose_b")) return Expr();
  auto a = centred(m, m.in(0)), b = centred(m, m.in(1));
  if (!a || !b || a->q.dims() != m.in(0).dims() || b->q.dims() != m.in(1).dims()) return Expr();
  if (a->zero && !is_one_number(a->zero)) return m.miss("the left zero points differ");
  Expr a_zero = a->zero ? reshape(a->zero, {}) : Expr(), b_zero;
  if (b->zero && !(b_zero = by_column(b->zero, b->q.dim(-1)))) return m.miss("the right zero points are not by column");
  Expr y = m.builder().op(Op::kIntegerMatmul, {a->q, b->q, a_zero, b_zero});
  return m.is_refused(y) ? Expr() : y;
}

// The product with one more operand; absent where it has one.
static Expr with_operand(const Match& m, Expr product, size_t at, Expr operand) {
  const Node& node = m.node(product);
  if (node.in.size() > at && present(node.in[at])) return Expr();
  Expr column = operand.dtype() == DType::kF32 ? by_column(operand, product.dim(-1)) : Expr();
  return column ? m.rebuilt(product, {{at, column}})[0] : Expr();
}

// cast(integer_matmul(a, b)) * s -> integer_matmul(a, b; s)
static Expr scaled_product(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    Expr real = m.in(i);
    if (real.dtype() != DType::kF32 || !m.is(real, Op::kCast)) continue;
    Expr product = m.input(real, 0);
    if (!m.is(product, Op::kIntegerMatmul) || m.anchor().dims() != product.dims()) continue;
    if (!m.take(real) || !m.take(product)) continue;
    if (Expr y = with_operand(m, product, 4, m.in(1 - i))) return y;
  }
  return Expr();
}

// integer_matmul(a, b; s) + bias -> integer_matmul(a, b; s, bias)
static Expr product_with_bias(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    Expr product = m.in(i), bias = m.in(1 - i);
    if (!m.is(product, Op::kIntegerMatmul) || product.dtype() != DType::kF32) continue;
    if (!m.is_resident(bias) || is_one_number(bias) || m.anchor().dims() != product.dims() || !m.take(product))
      continue;
    if (Expr y = with_operand(m, product, 5, bias)) return y;
  }
  return Expr();
}

void add_integer_rules(RuleSet& rules) {
  rules.add(exact, "integer_matmul", std::vector{Op::kMatmul}, product_of_integers, 2, {Op::kCast});
  rules.add(exact, "integer_scale", std::vector{Op::kMul}, scaled_product, 2, {Op::kIntegerMatmul});
  rules.add(exact, "integer_bias", std::vector{Op::kAdd}, product_with_bias, 1, {Op::kIntegerMatmul});
}

}  // namespace rlx
