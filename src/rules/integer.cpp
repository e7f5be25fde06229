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

// ---- convolutions, as products of what their windows hold ----

// x[N, spatial..., C] with so many copies of `value` on both sides of an axis.
static Expr padded(Expr x, int64_t axis, const Dim& lo, const Dim& hi, Expr value) {
  auto edge = [&](const Dim& count) {
    std::vector<Dim> dims = x.dims();
    dims[static_cast<size_t>(axis)] = count;
    return broadcast_to(value, dims);
  };
  std::vector<Expr> parts;
  if (!lo.is(0)) parts.push_back(edge(lo));
  parts.push_back(x);
  if (!hi.is(0)) parts.push_back(edge(hi));
  return parts.size() == 1 ? x : concat(parts, axis);
}

// What a window reads of x[N, spatial..., C]: [N, outputs..., taps * C], tap by tap.
static Expr windows(Expr x, const Attrs& conv, std::span<const Dim> taps) {
  std::vector<Expr> parts{x};
  for (size_t i = 0; i < taps.size(); i++) {
    auto axis = static_cast<int64_t>(i) + 1;
    int64_t stride = conv.i64s("strides")[i], dilation = conv.i64s("rhs_dilation")[i];
    const Dim end = x.dim(axis);
    std::vector<Expr> next;
    for (Expr part : parts)
      for (int64_t tap = 0; tap < taps[i].literal(); tap++) {
        next.push_back(slice(part, axis, tap * dilation, end - (taps[i] - 1 - tap) * dilation, stride));
      }
    parts = std::move(next);
  }
  return parts.size() == 1 ? parts[0] : concat(parts, -1);
}

static bool is_simple_conv(const Attrs& conv, Expr w) {
  static constexpr int64_t kMostTaps = 64;
  int64_t taps = 1;
  for (size_t i = 2; i < w.rank(); i++) taps *= w.dims()[i].is_literal() ? w.dims()[i].literal() : kMostTaps + 1;
  for (std::string_view pad : {"pad_lo", "pad_hi"})
    for (const Dim& dim : conv.dims(pad))
      if (!dim.is_literal() || dim.literal() < 0) return false;
  return taps >= 1 && taps <= kMostTaps && conv.i64("groups") == 1 &&
         conv.i64s("lhs_dilation") == Axes(w.rank() - 2, 1);
}

// The zero point as one of the numbers themselves; absent where it might be none of them.
static Expr as_number(const Match& m, Expr zero, DType dtype) {
  if (!zero) return m.builder().scalar(dtype, 0);
  if (Expr q = widened_from(m, m.under_views(zero)); q && q.dtype() == dtype) return reshape(q, {});
  auto range = m.range(zero);
  bool is_signed = dtype == DType::kI8;
  if (!range || range->lo < (is_signed ? -128 : 0) || range->hi > (is_signed ? 127 : 255)) return Expr();
  return cast(reshape(zero, {}), dtype);
}

// conv(x - zx, w - zw) of widened 8-bit numbers -> transpose(integer_matmul(windows of x, w, zx, zw)): channels last,
// and what lies outside is zx
static Expr conv_of_integers(const Match& m) {
  auto x = centred(m, m.in(0)), w = centred(m, m.in(1));
  const Attrs& conv = m.attrs();
  if (!x || !w || m.anchor().dtype() != DType::kI32) return Expr();
  if (x->q.dims() != m.in(0).dims() || w->q.dims() != m.in(1).dims()) return Expr();
  if (!m.is_resident(w->q) || !is_simple_conv(conv, w->q)) return m.miss("not a plain convolution with a weight");
  if (x->zero && !is_one_number(x->zero)) return m.miss("the zero points of x differ");
  Expr outside = as_number(m, x->zero, x->q.dtype());
  if (!outside) return m.miss("the zero point of x may be no number of its dtype");
  auto axes = static_cast<int64_t>(w->q.rank()) - 2;
  Axes last{0}, first{0, axes + 1}, rows;
  for (int64_t i = 0; i < axes; i++) last.push_back(2 + i), first.push_back(1 + i), rows.push_back(2 + i);
  last.push_back(1);
  rows.insert(rows.end(), {1, 0});
  const Dim& depth = w->q.dim(1);  // the convolution has demanded it of x, whatever x calls it
  Expr in = transpose(x->q.dim(1) == depth ? x->q : slice(x->q, 1, 0, depth), last);
  for (int64_t i = 0; i < axes; i++) {
    auto at = static_cast<size_t>(i);
    in = padded(in, i + 1, conv.dims("pad_lo")[at], conv.dims("pad_hi")[at], outside);
  }
  std::span<const Dim> taps = std::span(w->q.dims()).subspan(2);
  const Dim& channels = w->q.dim(0);
  Expr columns = reshape(transpose(w->q, rows), {element_count(std::span(w->q.dims()).subspan(1)), channels}), w_zero;
  if (w->zero && is_one_number(w->zero)) w_zero = reshape(w->zero, {});
  if (w->zero && !w_zero) {
    if (w->zero.rank() == 0 || w->zero.dims()[0] != channels || !(element_count(w->zero.dims()) == channels) ||
        w->zero.rank() != w->q.rank())
      return m.miss("the zero points of the weight are not by channel");
    w_zero = reshape(w->zero, {channels});
  }
  Expr x_zero = x->zero ? reshape(x->zero, {}) : Expr();
  Expr y = m.builder().op(Op::kIntegerMatmul, {windows(in, conv, taps), columns, x_zero, w_zero});
  return m.is_refused(y) ? Expr() : transpose(y, first);
}

// ---- what follows products ----

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
  rules.add(exact, "integer_conv", std::vector{Op::kConv}, conv_of_integers, 2, {Op::kCast});
  rules.add(exact, "integer_scale", std::vector{Op::kMul}, scaled_product, 2, {Op::kIntegerMatmul});
  rules.add(exact, "integer_bias", std::vector{Op::kAdd}, product_with_bias, 1, {Op::kIntegerMatmul});
}

}  // namespace rlx
