// SPDX-License-Identifier: Apache-2.0
// Arithmetic in normal form: products instead of quotients, roots as rsqrt, sums instead of differences, one direction
// of every comparison. A rule never folds chains of scalars: (x + c1) + c2 must keep its inner sum until `fuse` has
// looked.
#include <cmath>

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

// Whether a constant operand leaves the other's shape alone, so that the operation may vanish.
static bool keeps_shape(const Match& m, Expr x) {
  return x.dims() == m.anchor().dims();
}

// x / c -> x * (1/c): the same bits for a power of two, one more rounding else; where the dtype holds 1/c
static Expr divide_by_constant(const Match& m, bool exact_only) {
  auto c = m.splat(m.in(1));
  DType dtype = m.anchor().dtype();
  if (!c || !is_float(dtype) || !is_normal(dtype, *c) || !is_normal(dtype, 1 / *c)) return Expr();
  if (is_power_of_two(*c) != exact_only) return Expr();
  if (!keeps_shape(m, m.in(0))) return Expr();
  return m.in(0) * scalar_of(m.in(0), 1 / *c);
}

// pow(x, n) for the small n that files hold
static Expr small_power(const Match& m) {
  auto exponent = m.splat(m.in(1));
  Expr x = m.in(0);
  if (!exponent || !is_float(x.dtype()) || !keeps_shape(m, x)) return Expr();
  if (*exponent == 1) return x;
  if (*exponent == 2) return x * x;
  if (*exponent == 3) return x * x * x;
  if (*exponent == -1) return 1.0 / x;
  return Expr();
}

// pow(x, -0.5) -> rsqrt(x), which differs at -0 and -inf
static Expr power_as_rsqrt(const Match& m) {
  auto exponent = m.splat(m.in(1));
  Expr x = m.in(0);
  return exponent == -0.5 && is_float(x.dtype()) && keeps_shape(m, x) ? unary(Op::kRsqrt, x) : Expr();
}

// a / sqrt(v) -> a * rsqrt(v)
static Expr divide_by_root(const Match& m) {
  Expr divisor = m.in(1);
  if (m.node(divisor).op != Op::kSqrt || !is_float(divisor.dtype())) return Expr();
  Expr root = unary(Op::kRsqrt, m.builder().wrap(m.node(divisor).in[0]));
  if (!root || !root.valid() || m.is_refused(root)) return Expr();
  auto numerator = m.splat(m.in(0));
  if (numerator && *numerator == 1 && root.dims() == m.anchor().dims()) return root;
  return m.in(0) * root;
}

// x - c -> x + (-c)
static Expr subtract_constant(const Match& m) {
  auto c = m.splat(m.in(1));
  if (!c || !is_float(m.anchor().dtype()) || !keeps_shape(m, m.in(0)) || std::isnan(*c)) return Expr();
  return m.in(0) + scalar_of(m.in(0), -*c);
}

// x * 1 -> x; x / 1 -> x
static Expr times_one(const Match& m) {
  bool divides = m.node(m.anchor()).op == Op::kDiv;
  for (size_t i = divides ? 1 : 0; i < 2; i++) {
    auto c = m.splat(m.in(i));
    if (c && *c == 1 && keeps_shape(m, m.in(1 - i))) return m.in(1 - i);
  }
  return Expr();
}

static Expr plus_zero(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    auto c = m.splat(m.in(i));
    if (c && *c == 0 && keeps_shape(m, m.in(1 - i))) return m.in(1 - i);
  }
  return Expr();
}

// cast to the dtype that x has -> x; cast(cast(x)) of an exact widening and back -> x
static Expr cast_to_itself(const Match& m) {
  Expr x = m.in(0);
  if (x.dtype() == m.anchor().dtype()) return x;
  const Node& inner = m.node(x);
  if (inner.op != Op::kCast) return Expr();
  Expr source = m.builder().wrap(inner.in[0]);
  bool widened = is_half(source.dtype()) && x.dtype() == DType::kF32;
  return widened && source.dtype() == m.anchor().dtype() ? source : Expr();
}

// where(not c, a, b) -> where(c, b, a); where of a constant condition -> that side
static Expr where_condition(const Match& m) {
  const Node& condition = m.node(m.in(0));
  if (auto c = m.splat(m.in(0))) {
    Expr chosen = m.in(*c != 0 ? 1 : 2);
    return broadcast_to(chosen, m.anchor().dims());
  }
  if (condition.op != Op::kBitXor) return Expr();
  for (size_t i = 0; i < 2; i++) {
    auto flip = m.splat(m.builder().wrap(condition.in[i]));
    if (flip && *flip == 1) return where(m.builder().wrap(condition.in[1 - i]), m.in(2), m.in(1));
  }
  return Expr();
}

// and with true, or with false -> the other
static Expr logical_identity(const Match& m) {
  if (m.anchor().dtype() != DType::kBool) return Expr();
  double neutral = m.node(m.anchor()).op == Op::kBitAnd ? 1 : 0;
  for (size_t i = 0; i < 2; i++) {
    auto c = m.splat(m.in(i));
    if (!c) continue;
    return broadcast_to(m.in(*c == neutral ? 1 - i : i), m.anchor().dims());
  }
  return Expr();
}

// not(not(x)) -> x; bool only, where xor with true is "not"
static Expr double_not(const Match& m) {
  if (m.anchor().dtype() != DType::kBool) return Expr();
  for (size_t i = 0; i < 2; i++) {
    const Node& inner = m.node(m.in(i));
    auto outer = m.splat(m.in(1 - i));
    if (!outer || *outer != 1 || inner.op != Op::kBitXor) continue;
    for (size_t k = 0; k < 2; k++) {
      auto flip = m.splat(m.builder().wrap(inner.in[k]));
      Expr x = m.builder().wrap(inner.in[1 - k]);
      if (flip && *flip == 1 && keeps_shape(m, x)) return x;
    }
  }
  return Expr();
}

// not(a < b) -> b <= a; not(a <= b) -> b < a; of integers, where there is no NaN
static Expr not_less(const Match& m) {
  if (m.anchor().dtype() != DType::kBool) return Expr();
  for (size_t i = 0; i < 2; i++) {
    auto flip = m.splat(m.in(1 - i));
    const Node& inner = m.node(m.in(i));
    if (!flip || *flip != 1 || (inner.op != Op::kLt && inner.op != Op::kLe) || !keeps_shape(m, m.in(i))) continue;
    Expr a = m.builder().wrap(inner.in[0]), b = m.builder().wrap(inner.in[1]);
    if (is_integer(a.dtype())) return inner.op == Op::kLt ? less_equal(b, a) : less(b, a);
  }
  return Expr();
}

// view(x * s) -> view(x) * s, towards the products whose scale it may become
static Expr scalar_out_of_view(const Match& m) {
  Expr product = m.in(0);
  const Node& inner = m.node(product);
  if (inner.op != Op::kMul || !is_float(product.dtype()) || !m.is_inner(product)) return Expr();
  for (size_t i = 0; i < 2; i++) {
    auto s = m.splat(m.input(product, i));
    Expr x = m.input(product, 1 - i);
    if (!s || !(x.dims() == product.dims())) continue;
    Expr moved = m.builder().add(m.graph().info(m.node(m.anchor())), std::vector{x}, Attrs(m.attrs()))[0];
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

// softmax(x - max(x)) -> softmax(x), which takes the maximum off itself
static Expr softmax_unshifted(const Match& m, const Pattern& x, const Pattern& top) {
  const Axes& axes = m.attrs(top).i64s("axes");
  if (axes != Axes{m.attrs().i64("axis")}) return m.miss("the maximum is not over the softmax's axis");
  return m.builder().op(Op::kSoftmax, {m[x]}, {{"axis", axes[0]}});
}

void add_arithmetic_rules(RuleSet& rules) {
  rules.add(exact, "times_one", std::vector{Op::kMul, Op::kDiv}, times_one);
  rules.add(fast, "plus_zero", std::vector{Op::kAdd}, plus_zero);
  rules.add(exact, "cast_to_itself", std::vector{Op::kCast}, cast_to_itself);
  rules.add(exact, "divide_by_power_of_two", std::vector{Op::kDiv},
            [](const Match& m) { return divide_by_constant(m, true); });
  rules.add(close, "divide_by_constant", std::vector{Op::kDiv},
            [](const Match& m) { return divide_by_constant(m, false); });
  rules.add(close, "divide_by_root", std::vector{Op::kDiv}, divide_by_root);
  rules.add(close, "small_power", std::vector{Op::kPow}, small_power);
  rules.add(fast, "power_as_rsqrt", std::vector{Op::kPow}, power_as_rsqrt);
  rules.add(exact, "subtract_constant", std::vector{Op::kSub}, subtract_constant);
  rules.add(exact, "where_condition", std::vector{Op::kWhere}, where_condition);
  rules.add(exact, "logical_identity", std::vector{Op::kBitAnd, Op::kBitOr}, logical_identity);
  rules.add(exact, "double_not", std::vector{Op::kBitXor}, double_not);
  rules.add(exact, "not_less", std::vector{Op::kBitXor}, not_less);
  rules.add(exact, "scalar_out_of_view", std::vector{Op::kReshape, Op::kTranspose}, scalar_out_of_view);

  Pattern x = any(), y = any();
  rules.add(exact, "neg_neg", neg(neg(x)), x);
  Pattern top = op(Op::kReduce, {x}).with("fn", std::string("max")).with("keep_dims", int64_t{1});
  Pattern stopped = either({top, op(Op::kStopGradient, {top})});
  Pattern e = exp(x - stopped), total = sum(e);
  rules.add(close, "softmax_unshifted", op(Op::kSoftmax, {x - stopped}),
            [=](const Match& m) { return softmax_unshifted(m, x, top); });
  rules.add(close, "softmax", e / total, [=](const Match& m) { return same_axis_softmax(m, x, top, total); });
}

}  // namespace rlx
