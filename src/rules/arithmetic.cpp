// SPDX-License-Identifier: Apache-2.0
// Arithmetic in normal form: products instead of quotients, rsqrt instead of roots, sums instead of differences, one
// direction of every comparison. No rule here joins chains of scalars, as (x + c1) + c2: `fuse` looks for the inner
// sum.
#include <algorithm>
#include <cmath>

#include "rules/flow.h"
#include "rules/numbers.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

static bool is_power_of_two(double c) {
  int exponent;
  return std::isfinite(c) && std::fabs(std::frexp(c, &exponent)) == 0.5;
}

static Expr scalar_of(Expr like, double value) {
  return like.builder().scalar(like.dtype(), value);
}

// A value of the anchor's shape: the other operand does not enlarge it, so the op may vanish.
static Pattern of_shape() {
  return any().where("of the result's shape", [](const Match& m, Expr x) { return m.has_shape(x); });
}

// Whether a product with 1/c, as the dtype holds it, is within the class of a quotient (semantics.md C10): a half may
// be off by one of its own ulps, and the last rounding takes half of one.
static bool has_precise_inverse(DType dtype, double c) {
  if (!is_half(dtype)) return true;
  double allowed = dtype == DType::kF16 ? 0x1p-12 : 0x1p-9;
  return std::fabs(rounded_to(dtype, 1 / c) * c - 1) <= allowed;
}

// x / c -> x * (1/c), if the dtype holds 1/c. For a power of two the bits are the same, else there is one more
// rounding, which nothing that jumps may see.
static Expr divide_by_constant(const Match& m, Grade grade) {
  auto c = m.splat(m.in(1));
  DType dtype = m.anchor().dtype();
  if (!c || !is_float(dtype) || !is_normal(dtype, *c) || !is_normal(dtype, 1 / *c)) return Expr();
  if (is_power_of_two(*c) != (grade == exact)) return Expr();
  if (!has_precise_inverse(dtype, *c)) return m.miss("a half does not hold the inverse well enough");
  if (!m.has_shape(m.in(0))) return Expr();
  if (grade != exact && feeds_jump(m, m.anchor())) return m.miss("the quotient is rounded or compared");
  return m.in(0) * scalar_of(m.in(0), 1 / *c);
}

// a / sqrt(v) -> a * rsqrt(v); 1 / sqrt(v) -> rsqrt(v)
static Expr divide_by_root(const Match& m, Expr a, Expr v) {
  if (!is_float(v.dtype())) return Expr();
  if (feeds_jump(m, m.anchor())) return m.miss("the quotient is rounded or compared");
  Expr root = unary(Op::kRsqrt, v);
  if (!root.valid() || m.is_refused(root)) return Expr();
  return m.splat(a) == 1 && m.has_shape(root) ? root : a * root;
}

// x - c -> x + (-c)
static Expr subtract_constant(const Match& m) {
  auto c = m.splat(m.in(1));
  if (!c || !is_float(m.anchor().dtype()) || !m.has_shape(m.in(0)) || std::isnan(*c)) return Expr();
  return m.in(0) + scalar_of(m.in(0), -*c);
}

// cast(x) to x's own dtype -> x; cast(cast(x, f32), half) of a half x -> x
static Expr cast_to_itself(const Match& m) {
  Expr x = m.in(0);
  bool is_own = x.dtype() == m.anchor().dtype();
  if (is_own && x.dtype() == DType::kBool && !is_zero_or_one(m, x)) return m.miss("bytes that are not known");
  if (is_own) return x;
  if (!m.is(x, Op::kCast)) return Expr();
  Expr source = m.input(x, 0);
  bool widened = is_half(source.dtype()) && x.dtype() == DType::kF32;
  return widened && source.dtype() == m.anchor().dtype() ? source : Expr();
}

// x and true -> x; x or false -> x; x and false -> false; x or true -> true
static Expr logical_identity(const Match& m) {
  if (m.anchor().dtype() != DType::kBool) return Expr();
  bool neutral = m.node(m.anchor()).op == Op::kBitAnd;
  for (size_t i = 0; i < 2; i++) {
    auto c = m.splat(m.in(i));
    if (!c) continue;
    bool is_neutral = (*c != 0) == neutral;
    if (is_neutral && !is_zero_or_one(m, m.in(1 - i))) return m.miss("bytes that are not known");
    return broadcast_to(is_neutral ? m.in(1 - i) : m.builder().scalar(DType::kBool, *c != 0), m.anchor().dims());
  }
  return Expr();
}

// Only for integers: a comparison with NaN is false, and so is its opposite.
static Expr not_less(const Match& m, Expr comparison, Expr a, Expr b) {
  if (!is_integer(a.dtype()) || !m.has_shape(comparison)) return Expr();
  return m.is(comparison, Op::kLt) ? less_equal(b, a) : less(b, a);
}

// Whether x is a product with a number of a product with a number of ..., so often that a view under each of them would
// have too many to pass.
static bool is_long_chain_of_scalars(const Match& m, Expr x) {
  constexpr int kMost = 8;
  for (int i = 0; i < kMost; i++) {
    if (!m.is(x, Op::kMul)) return false;
    bool first = m.splat(m.input(x, 0)).has_value();
    if (!first && !m.splat(m.input(x, 1))) return false;
    x = m.input(x, first ? 1 : 0);
  }
  return true;
}

// view(x * s) -> view(x) * s: the scalar moves towards the product whose scale it may become
static Expr scalar_out_of_view(const Match& m) {
  Expr product = m.in(0);
  if (!m.is(product, Op::kMul) || !is_float(product.dtype()) || !m.take(product)) return Expr();
  for (size_t i = 0; i < 2; i++) {
    auto s = m.splat(m.input(product, i));
    Expr x = m.input(product, 1 - i);
    if (!s || !(x.dims() == product.dims())) continue;
    if (is_long_chain_of_scalars(m, x)) return m.miss("there are many scalars");
    Expr moved = m.rebuilt(m.anchor(), {{0, x}})[0];
    return moved * scalar_of(moved, *s);
  }
  return Expr();
}

static Expr same_axis_softmax(const Match& m, const Pattern& x, const Pattern& top, const Pattern& total) {
  const Attrs &max_attrs = m.attrs(top), &sum_attrs = m.attrs(total);
  if (!equal(max_attrs.get("axes"), sum_attrs.get("axes"))) return m.miss("the axes differ");
  const Axes& axes = max_attrs.i64s("axes");
  if (axes.size() != 1) return m.miss("more than one axis");
  return m.builder().op(Op::kSoftmax, {m[x]}, {{"axis", axes[0]}});
}

// softmax(x - max(x)) -> softmax(x), which subtracts the maximum itself
static Expr softmax_unshifted(const Match& m, const Pattern& x, const Pattern& top) {
  const Axes& axes = m.attrs(top).i64s("axes");
  if (axes != Axes{m.attrs().i64("axis")}) return m.miss("the maximum is not over the softmax's axis");
  return m.builder().op(Op::kSoftmax, {m[x]}, {{"axis", axes[0]}});
}

static void add_power_rules(RuleSet& rules) {
  Pattern x = any().where("a float of the result's shape",
                          [](const Match& m, Expr x) { return is_float(x.dtype()) && m.has_shape(x); });
  auto power = [&](double exponent) { return op(Op::kPow, {x, exactly(exponent)}); };
  rules.add(close, "small_power", power(1), x);
  rules.add(close, "small_power", power(2), x * x);
  Pattern wide = x.where("not a half, which would be rounded twice", [](const Match& m, Expr x) {
    return is_float(x.dtype()) && !is_half(x.dtype()) && m.has_shape(x);
  });
  rules.add(close, "small_power", op(Op::kPow, {wide, exactly(3)}), wide * wide * wide);
  rules.add(close, "small_power", power(-1), 1.0 / x);
  Pattern n = any().where("an integer of the result's shape",
                          [](const Match& m, Expr x) { return !is_float(x.dtype()) && m.has_shape(x); });
  rules.add(exact, "whole_power", op(Op::kPow, {n, exactly(1)}), n);
  rules.add(exact, "whole_power", op(Op::kPow, {n, exactly(2)}), n * n);
  rules.add(exact, "whole_power", op(Op::kPow, {n, exactly(3)}), n * n * n);
  rules.add(fast, "power_as_rsqrt", power(-0.5), op(Op::kRsqrt, {x}));  // which differs at -0 and -inf
}

// Rules of booleans; "not" is exclusive or with true.
static void add_logical_rules(RuleSet& rules) {
  Pattern c = any(), a = any(), b = any(), truth = exactly(1);
  Pattern x = any().where("of the result's shape, of bytes that are 0 or 1",
                          [](const Match& m, Expr x) { return m.has_shape(x) && is_zero_or_one(m, x); });
  auto negation = [&](const Pattern& of) {
    return op(Op::kBitXor, {of, truth}).shared().where("of booleans", [](const Match&, Expr y) {
      return y.dtype() == DType::kBool;
    });
  };
  rules.add(exact, "logical_identity", {Op::kBitAnd, Op::kBitOr}, logical_identity);
  // not(not(x)) -> x
  rules.add(exact, "double_not", negation(negation(x)), x);
  // not(a < b) -> b <= a; not(a <= b) -> b < a
  Pattern comparison = either({op(Op::kLt, {a, b}).shared(), op(Op::kLe, {a, b}).shared()});
  rules.add(exact, "not_less", negation(comparison),
            [=](const Match& m) { return not_less(m, m[comparison], m[a], m[b]); });
  // where(not c, a, b) -> where(c, b, a)
  rules.add(exact, "where_condition", op(Op::kWhere, {negation(c), a, b}), op(Op::kWhere, {c, b, a}));
  // where(true, a, b) -> a; where(false, a, b) -> b
  Pattern chosen = splat();
  rules.add(exact, "where_condition", op(Op::kWhere, {chosen, a, b}),
            [=](const Match& m) { return broadcast_to(m.number(chosen) != 0 ? m[a] : m[b], m.anchor().dims()); });
}

static void add_softmax_rules(RuleSet& rules) {
  Pattern x = any();
  Pattern top = op(Op::kReduce, {x}).with("fn", std::string("max")).with("keep_dims", int64_t{1});
  Pattern stopped = either({top, op(Op::kStopGradient, {top})});
  Pattern e = exp(x - stopped), total = sum(e);
  rules.add(close, "softmax_unshifted", op(Op::kSoftmax, {x - stopped}),
            [=](const Match& m) { return softmax_unshifted(m, x, top); });
  rules.add(close, "softmax", e / total, [=](const Match& m) { return same_axis_softmax(m, x, top, total); });
}

void add_arithmetic_rules(RuleSet& rules) {
  Pattern x = of_shape(), a = any(), v = any();
  // x * 1 -> x; x / 1 -> x
  rules.add(exact, "times_one", either({x * exactly(1), x / exactly(1)}), x);
  rules.add(fast, "plus_zero", either({x + exactly(0), x + exactly(-0.0)}), x);
  rules.add(exact, "neg_neg", neg(neg(a)), a);
  rules.add(exact, "cast_to_itself", {Op::kCast}, cast_to_itself);
  rules.add(exact, "divide_by_power_of_two", {Op::kDiv}, [](const Match& m) { return divide_by_constant(m, exact); });
  rules.add(close, "divide_by_constant", {Op::kDiv}, [](const Match& m) { return divide_by_constant(m, close); });
  rules.add(close, "divide_by_root", a / sqrt(v).shared(),
            [=](const Match& m) { return divide_by_root(m, m[a], m[v]); });
  rules.add(exact, "subtract_constant", {Op::kSub}, subtract_constant);
  rules.add(exact, "scalar_out_of_view", {Op::kReshape, Op::kTranspose}, scalar_out_of_view);
  add_power_rules(rules);
  add_logical_rules(rules);
  add_softmax_rules(rules);
}

}  // namespace rlx
