// SPDX-License-Identifier: Apache-2.0
// One rule for each kind of link from the product q k' to the softmax. A rule declines a link that it could absorb only
// by changing the order of two links; what was absorbed before it stays.
#include "rules/scores.h"

#include <algorithm>
#include <cmath>

#include "ops/views.h"
#include "rules/numbers.h"
#include "rules/rules.h"

namespace rlx {

std::optional<Scores> take_scores(const Match& m, Expr value) {
  if (!value || !m.is(value, Op::kScores) || !m.take(value)) return std::nullopt;
  const Attrs& attrs = m.node(value).attrs;
  auto in = [&](size_t i) { return m.input(value, i); };
  return Scores{.value = in(0),
                .q = in(1),
                .k = in(2),
                .mask = in(3),
                .bias = in(4),
                .additive = in(5),
                .scale = attrs.f64("scale"),
                .softcap = attrs.f64("softcap"),
                .fill = attrs.f64("fill"),
                .stays_additive = attrs.flag("stays_additive")};
}

Expr in_f32(Expr x) {
  return x && is_half(x.dtype()) ? cast(x, DType::kF32) : x;
}

Expr regrouped(Expr term, std::span<const Dim> from, std::span<const Dim> to) {
  if (!term || term.rank() <= 2 || std::equal(from.begin(), from.end(), to.begin(), to.end())) return term;
  std::vector<Dim> dims = term.dims(), wide, regrouped;
  dims.insert(dims.begin(), from.size() - dims.size(), Dim(1));
  for (const AxisRun& run : reshape_runs(from.first(from.size() - 2), to.first(to.size() - 2))) {
    bool serves_all = std::all_of(dims.begin() + std::ptrdiff_t(run.from), dims.begin() + std::ptrdiff_t(run.from_end),
                                  [](const Dim& dim) { return dim.is(1); });
    for (size_t i = run.from; i < run.from_end; i++) wide.push_back(serves_all ? Dim(1) : from[i]);
    for (size_t i = run.to; i < run.to_end; i++) regrouped.push_back(serves_all ? Dim(1) : to[i]);
  }
  for (std::vector<Dim>* of : {&wide, &regrouped}) of->insert(of->end(), dims.end() - 2, dims.end());
  return reshape(broadcast_to(reshape(term, dims), wide), regrouped);
}

namespace {

// Whether a `scores` op stands for this value already.
bool has_scores_op(const Match& m, Expr value) {
  std::vector<uint32_t> users = m.users(value);
  return std::any_of(users.begin(), users.end(), [&](uint32_t user) {
    return m.graph().node(user).op == Op::kScores && m.graph().node(user).in[0] == value.value();
  });
}

// The op `scores` that stands for the anchor; absent if there is one already. The fill is rounded to the anchor's
// dtype, where it may become -inf.
Expr absorbed(const Match& m, Scores s) {
  if (!is_float(m.anchor().dtype()) || has_scores_op(m, m.anchor())) return Expr();
  s.fill = rounded_to(m.anchor().dtype(), s.fill);
  if (s.stays_additive && s.mask && std::isfinite(s.fill)) return m.miss("masks of different fills");
  if (m.anchor().dims() != s.value.dims() && !m.is(m.anchor(), Op::kReshape))
    return m.miss("a link changes the shape of the scores");
  return m.builder().op(
      Op::kScores, {m.anchor(), s.q, s.k, s.mask, s.bias, s.additive},
      {{"scale", s.scale}, {"softcap", s.softcap}, {"fill", s.fill}, {"stays_additive", int64_t{s.stays_additive}}});
}

// x * s -> x, and s joins the scale. Exporters scale halves first to keep the product in range; attention uses f32.
Expr unscaled(const Match& m, Expr x, double& scale) {
  if (!m.is(x, Op::kMul)) return x;
  for (size_t i = 0; i < 2; i++) {
    auto s = m.splat(m.input(x, i));
    Expr inner = m.input(x, 1 - i);
    if (!s || !is_moderate(scale * *s) || !(inner.dims() == x.dims())) continue;
    scale *= *s;
    return inner;
  }
  return x;
}

// matmul(q, kt) of two values of the run -> scores(q, k): k is kt with its last two axes exchanged
Expr scores_of_product(const Match& m) {
  Expr q = m.in(0), kt = m.in(1);
  if (m.anchor().rank() < 3 || m.is_resident(q) || m.is_resident(kt)) return Expr();
  if (m.attrs().flag("transpose_a") || m.attrs().has("out_dtype") || q.rank() != kt.rank())
    return m.miss("not a product of heads");
  for (size_t i = 0; i + 2 < q.rank(); i++) {
    bool serves_all = i == 1 && q.rank() == 4 && kt.dims()[i].is(1);  // one head of keys for all heads
    if (!serves_all && !(q.dims()[i] == kt.dims()[i])) return m.miss("q and k differ in batch or heads");
  }
  double scale = 1;
  q = unscaled(m, q, scale);
  Expr k = unscaled(m, kt, scale);
  if (!m.attrs().flag("transpose_b")) k = swap_last_axes(k);
  return absorbed(m, {.value = m.anchor(), .q = q, .k = k, .scale = scale});
}

// Whether a number counts as lower than any score (semantics.md R2). The lowest number of f16 is -65504.
bool is_fill(double value, DType dtype) {
  return value <= (dtype == DType::kF16 ? -6e4 : -1e9);
}

// A kernel may scale the queries instead, so the scale is one that may move into a product, or 0.
bool is_usable_scale(double scale) {
  return scale == 0 || is_moderate(scale);
}

// scores * s, scores / s
Expr scores_scaled(const Match& m) {
  bool divides = m.is(m.anchor(), Op::kDiv);
  for (size_t i = divides ? 1 : 0; i < 2; i++) {
    auto factor = m.splat(m.in(i));
    if (divides && factor) factor = 1 / *factor;
    if (!factor || !std::isfinite(*factor)) continue;
    auto s = take_scores(m, m.in(1 - i));
    if (!s) continue;
    if (s->softcap != 0) return m.miss("a scale outside the softcap");
    // The mask is applied before the scale: the scaled fill must be a fill too.
    if (s->mask && (!(*factor > 0) || !is_fill(s->fill * *factor, DType::kF32)))
      return m.miss("a scale that makes a mask no mask");
    s->scale *= *factor;
    if (!is_usable_scale(s->scale)) return m.miss("a scale that f32 may not hold");
    s->fill *= *factor;
    if (s->bias) s->bias = in_f32(s->bias) * *factor;
    if (s->additive) s->additive = in_f32(s->additive) * *factor;
    return absorbed(m, *s);
  }
  return Expr();
}

// scores * t, scores / t, where t is learned, one number for each head -> the scores of q * t, q / t, in f32 for halves
Expr scores_scaled_by_heads(const Match& m) {
  bool divides = m.is(m.anchor(), Op::kDiv);
  for (size_t i = divides ? 1 : 0; i < 2; i++) {
    Expr factor = m.in(i);
    if (!m.is(m.in(1 - i), Op::kScores) || !m.is_resident(factor) || m.splat(factor) || factor.rank() < 3) continue;
    if (!factor.dim(-1).is(1) || !factor.dim(-2).is(1)) return m.miss("a factor that is not one for each head");
    auto s = take_scores(m, m.in(1 - i));
    if (!s || s->softcap != 0 || s->mask || s->bias) return m.miss("a factor for each head outside other links");
    s->q = divides ? in_f32(s->q) / in_f32(factor) : in_f32(s->q) * in_f32(factor);
    s->k = in_f32(s->k);
    return absorbed(m, *s);
  }
  return Expr();
}

// c * tanh(scores / c)
Expr scores_softcapped(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    auto cap = m.splat(m.in(i));
    Expr bounded = m.in(1 - i);
    if (!cap || *cap <= 0 || !m.is(bounded, Op::kTanh) || !m.take(bounded)) continue;
    auto s = take_scores(m, m.input(bounded, 0));
    if (!s) continue;
    if (s->softcap != 0) return m.miss("one softcap inside another");
    if (s->mask || s->bias) return m.miss("a mask inside the softcap");
    if (!is_moderate(*cap)) return m.miss("a softcap whose product with the scale may be 0");
    s->scale *= *cap;  // the attribute means the scale before the division by cap
    if (!is_usable_scale(s->scale)) return m.miss("a scale that f32 may not hold");
    s->softcap = *cap;
    return absorbed(m, *s);
  }
  return Expr();
}

// cast(scores) between halves and f32, either way: attention computes in f32 and rounds once
Expr scores_cast(const Match& m) {
  DType to = m.anchor().dtype();
  auto s = is_between_half_and_f32(m.in(0).dtype(), to) ? take_scores(m, m.in(0)) : std::nullopt;
  if (!s) return Expr();
  if (is_half(to) && s->bias && !is_half(s->bias.dtype())) return m.miss("a bias that a half makes infinite");
  if (is_half(to)) s->additive = Expr();  // it may be infinite as a half, so it must not become a bias
  return absorbed(m, *s);
}

// reshape(scores) that splits and merges batch axes only -> the scores of q and k, reshaped alike
Expr scores_regrouped(const Match& m) {
  const std::vector<Dim>& to = m.anchor().dims();
  if (!m.is(m.in(0), Op::kScores) || to.size() < 3) return Expr();
  const std::vector<Dim> from = m.in(0).dims();
  std::span<const Dim> batch = std::span(from).first(from.size() - 2), regroup = std::span(to).first(to.size() - 2);
  if (!std::equal(from.end() - 2, from.end(), to.end() - 2) || reshape_runs(batch, regroup).empty())
    return m.miss("a reshape of queries or keys");
  auto s = take_scores(m, m.in(0));
  if (!s) return Expr();
  for (Expr* x : {&s->q, &s->k}) {
    if (!std::equal(batch.begin(), batch.end(), x->dims().begin(), x->dims().end() - 2))
      return m.miss("a reshape of heads that share keys");
    std::vector<Dim> dims(regroup.begin(), regroup.end());
    dims.insert(dims.end(), x->dims().end() - 2, x->dims().end());
    *x = reshape(*x, dims);
  }
  for (Expr* term : {&s->mask, &s->bias, &s->additive}) *term = regrouped(*term, from, to);
  return absorbed(m, *s);
}

// ---- masks ----

// A mask as floats that are added to the scores: where `mask` is false, the fill, else the bias.
struct AdditiveMask {
  Expr mask, bias;  // an absent bias is 0
  double fill;
};

// where(M, bias, NEG)
std::optional<AdditiveMask> mask_by_where(const Match& m, Expr term) {
  if (!m.is(term, Op::kWhere)) return std::nullopt;
  auto fill = m.splat(m.input(term, 2));
  if (!fill || !is_fill(*fill, term.dtype())) return std::nullopt;
  Expr mask = m.input(term, 0), bias = m.input(term, 1);
  if (m.splat(bias) == 0) return AdditiveMask{mask, Expr(), *fill};
  return std::isinf(*fill) ? std::optional(AdditiveMask{mask, bias, *fill}) : std::nullopt;
}

// (1 - cast(M)) * NEG, for a boolean M: an integer may hold more than 0 and 1. NEG is finite, as 0 * -inf is NaN.
std::optional<AdditiveMask> complement(const Match& m, Expr term) {
  if (!m.is(term, Op::kMul)) return std::nullopt;
  for (size_t i = 0; i < 2; i++) {
    auto fill = m.splat(m.input(term, i));
    Expr rest = m.input(term, 1 - i);
    if (!fill || !is_fill(*fill, term.dtype()) || std::isinf(*fill) || !m.is(rest, Op::kSub)) continue;
    Expr number = m.input(rest, 1);
    if (m.splat(m.input(rest, 0)) != 1 || !m.is(number, Op::kCast)) continue;
    Expr mask = m.input(number, 0);
    if (mask.dtype() == DType::kBool) return AdditiveMask{mask, Expr(), *fill};
  }
  return std::nullopt;
}

// The fill of a table that holds it and zeros.
std::optional<double> only_fill(const Tensor& tensor) {
  if (is_block(tensor.dtype())) return std::nullopt;
  double fill = 0;
  for (int64_t i = 0; i < tensor.count(); i++) {
    double element = element_as_f64(tensor, i);
    if (element == 0) continue;
    if (!is_fill(element, tensor.dtype()) || (fill != 0 && element != fill)) return std::nullopt;
    fill = element;
  }
  return fill != 0 ? std::optional(fill) : std::nullopt;
}

// A constant that holds zeros and one fill.
std::optional<AdditiveMask> constant_mask(const Match& m, Expr term) {
  auto fill = m.found_in(term, only_fill);
  return fill ? std::optional(AdditiveMask{equal(term, 0.0), Expr(), *fill}) : std::nullopt;
}

std::optional<AdditiveMask> additive_mask(const Match& m, Expr term) {
  for (auto look : {mask_by_where, complement, constant_mask})
    if (auto found = look(m, term)) return found;
  return std::nullopt;
}

Expr both(Expr a, Expr b) {
  return !a ? b : !b ? a : logical_and(a, b);
}
Expr plus(Expr a, Expr b) {
  return !a ? b : !b ? a : in_f32(a) + in_f32(b);
}

// Whether a further mask of this fill can be a boolean. Where two masks apply, finite fills add up to a number that a
// boolean cannot express.
bool joins(const Scores& s, double fill) {
  if (s.stays_additive && std::isfinite(fill)) return false;
  return !s.mask || (s.fill == fill && std::isinf(fill));
}

// Turns the masks so far into a bias, if all of them were floats. Where two finite fills add up, their sum is lower
// than either. So a row whose keys all have a fill attends to those with one fill only, which a boolean cannot express.
bool as_bias(Scores& s) {
  if (s.mask && !s.additive) return false;
  s.bias = plus(s.bias, s.additive);
  s.mask = s.additive = Expr();
  s.stays_additive = true;
  return true;
}

// scores + t: t is an additive mask, or else a bias
Expr scores_plus(const Match& m) {
  for (size_t i = 0; i < 2; i++) {
    Expr term = m.in(1 - i);
    auto s = take_scores(m, m.in(i));
    if (!s) continue;
    auto found = additive_mask(m, term);
    if (found && joins(*s, found->fill)) {
      bool is_additive = !s->mask || s->additive;
      s->additive = is_additive ? plus(s->additive, term) : Expr();
      s->mask = both(s->mask, found->mask);
      s->bias = plus(s->bias, found->bias);
      s->fill = found->fill;
    } else if (m.splat(term) != 0) {
      if (found && !as_bias(*s)) return m.miss("masks of different fills");
      s->bias = plus(s->bias, term);
    }
    return absorbed(m, *s);
  }
  return Expr();
}

// where(M, scores, NEG), where(not M, NEG, scores)
Expr scores_where(const Match& m) {
  for (size_t i = 1; i < 3; i++) {
    auto fill = m.splat(m.in(3 - i));
    if (!fill || !is_fill(*fill, m.anchor().dtype())) continue;
    auto s = take_scores(m, m.in(i));
    if (!s) continue;
    if (!joins(*s, *fill)) return m.miss("masks of different fills");
    s->mask = both(s->mask, i == 1 ? m.in(0) : logical_not(m.in(0)));
    s->additive = Expr();
    s->fill = *fill;
    return absorbed(m, *s);
  }
  return Expr();
}

}  // namespace

void add_score_rules(RuleSet& rules) {
  rules.add(close, "scores_of_product", {Op::kMatmul}, scores_of_product);
  rules.add(close, "scores_scaled", {Op::kMul, Op::kDiv}, scores_scaled);
  rules.add(close, "scores_scaled_by_heads", {Op::kMul, Op::kDiv}, scores_scaled_by_heads);
  rules.add(close, "scores_softcapped", {Op::kMul}, scores_softcapped);
  rules.add(close, "scores_plus", {Op::kAdd}, scores_plus, {.depth = 5, .needs = {Op::kScores}});
  rules.add(close, "scores_where", {Op::kWhere}, scores_where);
  rules.add(close, "scores_cast", {Op::kCast}, scores_cast);
  rules.add(close, "scores_regrouped", {Op::kReshape}, scores_regrouped);
}

}  // namespace rlx
