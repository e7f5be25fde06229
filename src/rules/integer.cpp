// SPDX-License-Identifier: Apache-2.0
// Products of quantised numbers, as ONNX's MatMulInteger and similar nodes are imported, and the ops that follow them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "rules/products.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// 8-bit numbers as i32, minus their zero point. Other products may read them too.
struct Centred {
  Expr q, zero;
};

static Expr widened_from(const Match& m, Expr x) {
  if (!x || !m.is(x, Op::kCast) || x.dtype() != DType::kI32) return Expr();
  Expr q = m.input(x, 0);
  return is_eight_bit(q.dtype()) ? q : Expr();
}

static std::optional<Centred> centred_here(const Match& m, Expr x) {
  if (Expr q = widened_from(m, x)) return Centred{q, Expr()};
  if (m.is(x, Op::kSub))
    if (Expr q = widened_from(m, m.input(x, 0))) return Centred{q, m.input(x, 1)};
  if (m.is(x, Op::kAdd))  // x - constant in normal form
    for (size_t i = 0; i < 2; i++)
      if (Expr q = widened_from(m, m.input(x, i)); q && m.is_resident(m.input(x, 1 - i)))
        return Centred{q, -m.input(x, 1 - i)};
  return std::nullopt;
}

// Centred numbers of the shape of x. If x is a view of them, such as the transpose of a convolution with channels last,
// the view moves to the 8-bit numbers: they have one zero point.
static std::optional<Centred> centred(const Match& m, Expr x) {
  Expr under = m.under_views(x);
  auto it = centred_here(m, under);
  if (!it || it->q.dims() != under.dims()) return std::nullopt;
  if (under.value() == x.value()) return it;
  if (it->zero && !is_one_number(it->zero)) return std::nullopt;
  return Centred{m.with_views(x, under, it->q), it->zero};
}

// A scalar, or a vector with one number per column of y; absent if x is neither.
static Expr by_column(Expr y, Expr x) {
  return is_one_number(x) ? reshape(x, {}) : column_vector(y, x);
}

// matmul(a - za, b - zb) of widened 8-bit numbers, transposed or not -> integer_matmul(a, b, za, zb)
static Expr product_of_integers(const Match& m) {
  if (m.anchor().dtype() != DType::kI32) return Expr();
  auto a = centred(m, m.in(0)), b = centred(m, m.in(1));
  if (!a || !b) return Expr();
  if (a->zero && !is_one_number(a->zero)) return m.miss("the left zero points differ");
  Expr a_zero = a->zero ? reshape(a->zero, {}) : Expr(), b_zero = b->zero, left = a->q, right = b->q;
  if (m.attrs().flag("transpose_a")) left = swap_last_axes(left);
  if (m.attrs().flag("transpose_b")) {
    right = swap_last_axes(right);
    if (b_zero && !is_one_number(b_zero)) b_zero = b_zero.rank() > 1 ? swap_last_axes(b_zero) : unsqueeze(b_zero, 1);
  }
  if (b_zero && !(b_zero = by_column(right, b_zero))) return m.miss("the right zero points are not by column");
  Expr y = m.builder().op(Op::kIntegerMatmul, {left, right, a_zero, b_zero});
  return m.is_refused(y) ? Expr() : y;
}

// ---- convolutions ----

// Zero points in the dtype of the numbers from which they are subtracted; absent if that dtype may not hold them.
static Expr as_numbers(const Match& m, Expr zero, DType dtype, const std::vector<Dim>& dims) {
  Expr wide = m.under_views(zero);
  if (Expr q = widened_from(m, wide); q && q.dtype() == dtype) return reshape(m.with_views(zero, wide, q), dims);
  auto range = m.range(zero);
  bool is_signed = dtype == DType::kI8;
  if (!range || range->lo < (is_signed ? -128 : 0) || range->hi > (is_signed ? 127 : 255)) return Expr();
  return cast(reshape(zero, dims), dtype);
}

// A scalar, or a vector with one number per channel of y[N, C, spatial...]; absent if x is neither.
static Expr by_channel(const Match& m, Expr y, Expr x) {
  return is_one_number(x) ? reshape(x, {}) : channel_vector(m, y, x);
}

// conv(x - zx, w - zw) of 8-bit numbers, widened or not -> integer_conv(x, w, zx, zw)
static Expr conv_of_integers(const Match& m) {
  if (m.anchor().dtype() != DType::kI32) return Expr();
  auto numbers = [&](Expr x) { return is_eight_bit(x.dtype()) ? std::optional(Centred{x, Expr()}) : centred(m, x); };
  auto x = numbers(m.in(0)), w = numbers(m.in(1));
  if (!x || !w) return Expr();
  if (x->zero && !is_one_number(x->zero)) return m.miss("the zero points of x differ");
  Expr x_zero = x->zero ? as_numbers(m, x->zero, x->q.dtype(), {}) : Expr(), w_zero;
  if (x->zero && !x_zero) return m.miss("the dtype of x may not hold its zero point");
  if (w->zero) {
    const Dim& filters = w->q.dim(0);
    bool is_one = is_one_number(w->zero);
    std::vector<Dim> by_filter(w->q.rank(), Dim(1));
    by_filter[0] = filters;
    if (!is_one && w->zero.dims() != by_filter) return m.miss("the zero points of the weight are not by channel");
    w_zero = as_numbers(m, w->zero, w->q.dtype(), is_one ? std::vector<Dim>() : std::vector<Dim>{filters});
    if (!w_zero) return m.miss("the dtype of the weight may not hold its zero points");
  }
  Expr y = m.builder().ops(Op::kIntegerConv, {x->q, w->q, x_zero, w_zero}, m.attrs().named())[0];
  return m.is_refused(y) ? m.miss("no kernel for the convolution") : y;
}

// The least and the largest of the numbers of a constant, which may be reshaped; absent if one of them is not normal
// and above 0.
struct Extremes {
  double lo, hi;
};
static std::optional<Extremes> extremes(const Match& m, Expr scale) {
  const Tensor* constant = m.graph().constant(m.under_views(scale, any_reshape).value());
  if (!constant || constant->dtype() != DType::kF32 || constant->count() == 0) return std::nullopt;
  const auto* numbers = reinterpret_cast<const float*>(constant->data());
  auto [lo, hi] = std::minmax_element(numbers, numbers + constant->count());
  if (!std::all_of(numbers, numbers + constant->count(), [](float it) { return std::isnormal(it) && it > 0; }))
    return std::nullopt;
  return Extremes{*lo, *hi};
}

// Whether scales of 8-bit numbers may move out of a sum: no term, and no sum of at most 2^33, leaves the normal numbers
// in either form, so only rounding differs.
static bool may_move_out(const Match& m, Expr x_scale, Expr w_scale) {
  constexpr double kLargest = 0x1p90, kLeast = 0x1p-120;
  auto x = extremes(m, x_scale), w = extremes(m, w_scale);
  return x && w && std::max({x->hi, w->hi, x->hi * w->hi}) <= kLargest && x->lo * w->lo >= kLeast;
}

// 8-bit numbers, with the scale and zero point that give their real values.
struct Scaled {
  Expr q, scale, zero;
};
static std::optional<Scaled> scaled(const Match& m, Expr x) {
  if (!m.is(x, Op::kDequantizeLinear) || x.dtype() != DType::kF32) return std::nullopt;
  Scaled it{m.input(x, 0), m.input(x, 1), m.node(x).in.size() > 2 ? m.input(x, 2) : Expr()};
  if (!is_eight_bit(it.q.dtype()) || it.scale.dtype() != DType::kF32 || m.node(x).attrs.i64("block_size") > 0)
    return std::nullopt;
  if (it.scale.rank() == 1 && it.scale.dim(0).is(1)) {
    it.scale = reshape(it.scale, {});
    if (it.zero) it.zero = reshape(it.zero, {});
  }
  return it;
}

// The same for views of such numbers: they have one scale, and the view moves to the 8-bit numbers.
static std::optional<Scaled> scaled_under_views(const Match& m, Expr x) {
  Expr under = m.under_views(x);
  auto it = scaled(m, under);
  if (!it || under.value() == x.value()) return it;
  if (it->scale.rank() != 0) return std::nullopt;
  it->q = m.with_views(x, under, it->q);
  return it;
}

constexpr int64_t kMaxTerms = 32768;  // so that no sum wraps

static Expr as_i32(Expr zero) {
  return zero ? cast(zero, DType::kI32) : Expr();
}

// matmul((a - za) * sa, (b - zb) * sb) -> integer_matmul(a, b, za, zb; sa * sb): sums are exact, and scaled at the end
static Expr product_of_scaled(const Match& m) {
  // Without a weight it may be the product of an attention, which is better fused.
  auto side = m.is_resident(m.in(1)) ? scaled_under_views : scaled;
  auto a = side(m, m.in(0)), b = side(m, m.in(1));
  if (!a || !b || m.anchor().dtype() != DType::kF32 || a->q.rank() < 2 || b->q.rank() < 2) return Expr();
  bool is_transposed = m.attrs().flag("transpose_b");
  if (m.attrs().flag("transpose_a") || (is_transposed && b->q.rank() > 2)) return m.miss("a side is transposed");
  if (a->scale.rank() != 0) return m.miss("the left scales differ");
  int64_t columns = is_transposed ? 0 : static_cast<int64_t>(b->q.rank()) - 1;
  if (b->scale.rank() != 0 && m.node(m.in(1)).attrs.i64("axis") != columns)
    return m.miss("the right scales are not by column");
  Dim terms = a->q.dim(-1);
  if (!terms.is_literal() || terms.literal() > kMaxTerms) return m.miss("a sum may have too many terms");
  if (!m.allows(fast) && !may_move_out(m, a->scale, b->scale)) return m.miss("scales are not known, or extreme");
  Expr right = is_transposed ? transpose(b->q, {1, 0}) : b->q;
  Expr y = m.builder().op(Op::kIntegerMatmul, {a->q, right, as_i32(a->zero), as_i32(b->zero), a->scale * b->scale});
  return m.is_refused(y) ? m.miss("no kernel for the product") : y;
}

// conv((x - zx) * sx, (w - zw) * sw) -> integer_conv(x, w, zx, zw; sx * sw), likewise
static Expr conv_of_scaled(const Match& m) {
  auto x = scaled_under_views(m, m.in(0)), w = scaled_under_views(m, m.in(1));
  if (!x || !w || m.anchor().dtype() != DType::kF32) return Expr();
  if (x->scale.rank() != 0) return m.miss("the scales of x differ");
  if (w->scale.rank() != 0 && m.node(m.in(1)).attrs.i64("axis") != 0)
    return m.miss("the scales of the weight are not by channel");
  Dim terms = element_count(std::span(w->q.dims()).subspan(1));
  if (!terms.is_literal() || terms.literal() > kMaxTerms) return m.miss("a sum may have too many terms");
  if (!m.allows(fast) && !may_move_out(m, x->scale, w->scale)) return m.miss("scales are not known, or extreme");
  Expr scale = x->scale * w->scale;
  Expr y = m.builder().ops(Op::kIntegerConv, {x->q, w->q, x->zero, w->zero, Expr(), scale}, m.attrs().named())[0];
  return m.is_refused(y) ? m.miss("no kernel for the convolution") : y;
}

// ---- what follows products ----

// The input numbers of the two products, as ops.def has them.
namespace matmul_in {
enum : size_t { kA, kB, kAZero, kBZero, kScale, kBias };
}
namespace conv_in {
enum : size_t { kX, kW, kXZero, kWZero, kAdd, kScale, kBias, kYScale, kYZero };
}

struct Slots {
  size_t scale, bias;
};
static Slots slots_of(const Match& m, Expr product) {
  return m.is(product, Op::kIntegerConv) ? Slots{conv_in::kScale, conv_in::kBias}
                                         : Slots{matmul_in::kScale, matmul_in::kBias};
}

// The product with one more operand; absent if it has this operand already.
static Expr with_operand(const Match& m, Expr product, size_t at, Expr operand, DType dtype) {
  const Node& node = m.node(product);
  if (operand.dtype() != dtype || (node.in.size() > at && present(node.in[at]))) return Expr();
  Expr numbers = m.is(product, Op::kIntegerConv) ? by_channel(m, product, operand) : by_column(product, operand);
  return numbers ? m.rebuilt(product, {{at, numbers}})[0] : Expr();
}

// The product with a bias; of a convolution in i32 too.
static Expr with_bias(const Match& m, Expr product, Expr bias) {
  bool is_real = product.dtype() == DType::kF32;
  if (m.anchor().dims() != product.dims() || is_one_number(bias)) return Expr();
  if (!is_real && !m.is(product, Op::kIntegerConv)) return Expr();
  return with_operand(m, product, is_real ? slots_of(m, product).bias : conv_in::kAdd, bias, product.dtype());
}

// The convolution with the scale and zero point of its result, which has one number for each.
static Expr with_result_scale(const Match& m, Expr conv, Expr scale, Expr zero) {
  DType to = m.anchor().dtype();
  if (!is_eight_bit(to) || scale.dtype() != DType::kF32 || !is_one_number(scale)) return Expr();
  zero = zero ? reshape(zero, {}) : m.builder().scalar(to, 0);
  return m.rebuilt(conv, {{conv_in::kYScale, reshape(scale, {})}, {conv_in::kYZero, zero}})[0];
}

static Pattern of_f32(const Pattern& pattern) {
  return pattern.where("in f32", [](const Match&, Expr x) { return x.dtype() == DType::kF32; });
}

static void add_rules_after_products(RuleSet& rules) {
  Pattern a = any(), b = any(), s = any(), bias = resident(), conv = of_f32(op(Op::kIntegerConv, {a, b}));
  Pattern product = either({op(Op::kIntegerMatmul, {a, b}), op(Op::kIntegerConv, {a, b}).with("relu", int64_t{0})});
  // cast(product) * s -> product(s)
  rules.add(exact, "integer_scale", op(Op::kCast, {product}) * s, [=](const Match& m) {
    bool enlarges = m.anchor().dims() != m[product].dims();
    return enlarges ? Expr() : with_operand(m, m[product], slots_of(m, m[product]).scale, m[s], DType::kF32);
  });
  // product(s) + bias -> product(s, bias)
  rules.add(exact, "integer_bias", product + bias, [=](const Match& m) { return with_bias(m, m[product], m[bias]); });
  // relu(integer_conv(a, b; s)) -> integer_conv(a, b; s, relu)
  rules.add(exact, "integer_relu", op(Op::kRelu, {conv}),
            [=](const Match& m) { return m.rebuilt(m[conv], {}, m.attrs(conv).with("relu", int64_t{1}))[0]; });
  // quantize_linear(integer_conv(a, b; s), t, z) -> integer_conv(a, b; s, t, z), also through views
  Pattern seen = through_views(conv);
  rules.add(exact, "integer_quantize", op(Op::kQuantizeLinear, {seen, s}).with("block_size", int64_t{0}),
            [=](const Match& m) {
              Expr y = with_result_scale(m, m[conv], m[s], m.in(2));
              return y ? m.with_views(m[seen], m[conv], y) : y;
            });
}

// quantize_linear(dequantize_linear(a) + dequantize_linear(b)) -> quantized_pair(a, b); the same for products
static Expr pair_of_quantised(const Match& m) {
  Expr real = m.in(0);
  bool is_product = m.is(real, Op::kMul);
  if ((!is_product && !m.is(real, Op::kAdd)) || !m.take(real)) return Expr();
  auto a = scaled(m, m.input(real, 0)), b = scaled(m, m.input(real, 1));
  DType to = m.anchor().dtype();
  if (!a || !b || !is_eight_bit(to) || m.in(1).dtype() != DType::kF32) return Expr();
  Expr scale = m.in(1), zero = m.in(2);
  for (Expr it : {a->scale, b->scale, scale})
    if (!is_one_number(it)) return m.miss("scales differ by channel");
  auto number = [&](Expr it, DType dtype) { return it ? reshape(it, {}) : m.builder().scalar(dtype, 0); };
  Expr a_zero = number(a->zero, a->q.dtype()), b_zero = number(b->zero, b->q.dtype());
  Expr y = m.builder().op(
      Op::kQuantizedPair,
      {a->q, b->q, reshape(a->scale, {}), a_zero, reshape(b->scale, {}), b_zero, reshape(scale, {}), number(zero, to)},
      {{"product", is_product ? int64_t{1} : int64_t{0}}});
  return m.is_refused(y) ? m.miss("no kernel for the pair") : y;
}

// quantize_linear(dequantize_linear(q, s, z), s, z) -> q, also through views: exact for normal scales, as a quotient
// that is rounded twice is far closer to q - z than to another integer
static Expr quantized_again(const Match& m) {
  Expr under = m.under_views(m.in(0));
  auto from = under ? scaled(m, under) : std::nullopt;
  if (!from || from->q.dtype() != m.anchor().dtype()) return Expr();
  auto same = [](Expr a, Expr b) { return a && b ? a.value() == b.value() : !a && !b; };
  Expr zero = m.node(under).in.size() > 2 ? m.input(under, 2) : Expr();
  if (!same(m.input(under, 1), m.in(1)) || !same(zero, m.in(2))) return m.miss("the scales or zero points differ");
  if (!is_one_number(m.in(1))) return m.miss("scales differ by channel");
  auto scale = extremes(m, m.in(1));
  if (!scale || scale->lo < 0x1p-100 || scale->hi > 0x1p100) return m.miss("the scale is not known, or extreme");
  return m.with_views(m.in(0), under, from->q);
}

void add_integer_rules(RuleSet& rules) {
  rules.add(exact, "integer_matmul", {Op::kMatmul}, product_of_integers, {.depth = 2, .needs = {Op::kCast}});
  rules.add(close, "integer_matmul_scaled", {Op::kMatmul}, product_of_scaled,
            {.depth = 2, .needs = {Op::kDequantizeLinear}});
  rules.add(exact, "integer_conv", {Op::kConv}, conv_of_integers, {.depth = 2});
  rules.add(close, "integer_conv_scaled", {Op::kConv}, conv_of_scaled, {.depth = 2, .needs = {Op::kDequantizeLinear}});
  add_rules_after_products(rules);
  rules.add(exact, "quantized_again", {Op::kQuantizeLinear}, quantized_again, {.needs = {Op::kDequantizeLinear}});
  rules.add(exact, "quantized_pair", {Op::kQuantizeLinear}, pair_of_quantised,
            {.depth = 2, .needs = {Op::kDequantizeLinear}});
}

}  // namespace rlx
