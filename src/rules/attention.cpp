// SPDX-License-Identifier: Apache-2.0
// Attention: softmax(scores) v, once the rules of scores.cpp have made one op of the scores. Masks that only compare
// positions become attributes.
#include <algorithm>
#include <cmath>

#include "rules/rules.h"
#include "rules/scores.h"

namespace rlx {

using namespace patterns;

namespace {

// ---- q, k, v ----

// Whether [B,G,1,S,D] broadcast to [B,G,R,S,D] and merged to [B,G*R,S,D] repeats heads, and not keys.
bool repeats_heads(const Match& m, Expr merged) {
  const std::vector<Dim>&to = m.input(merged, 0).dims(), &from = m.input(m.input(merged, 0), 0).dims();
  if (from.size() != 5 || to.size() != 5 || !from[2].is(1)) return false;
  for (size_t i : {0, 1, 3, 4})
    if (!(from[i] == to[i])) return false;
  return merged.dims() == std::vector<Dim>{from[0], from[1] * to[2], from[3], from[4]};
}

// The dims of scores as [B, H, queries, keys]. Scores of rank 3 have one head; a rank above 4 means more batch axes.
std::vector<Dim> as_four_dims(const std::vector<Dim>& scores) {
  size_t rank = scores.size();
  Dim heads = rank == 3 ? Dim(1) : scores[rank - 3];
  return {element_count(std::span(scores).first(rank == 3 ? 1 : rank - 3)), heads, scores[rank - 2], scores[rank - 1]};
}

Expr with_heads(Expr x, const std::vector<Dim>& dims4) {
  return x.rank() == 4 ? x : reshape(x, {dims4[0], dims4[1], x.dim(-2), x.dim(-1)});
}

// ---- masks in normal form ----

// A conjunction of masks: the bounds that they set on the positions of query i and key j, and the masks of other kinds.
struct Masks {
  std::optional<Dim> right, left;  // a key is allowed only if j <= i + right and j >= i - left
  std::vector<Expr> of_positions;  // the masks that say so
  std::vector<Expr> others;
};

// For a constant lower triangle: the d for which it is true exactly where j <= i + d. Constants that are true
// everywhere were dropped before.
std::optional<double> diagonal(const Tensor& tensor) {
  if (tensor.rank() < 2 || tensor.dtype() != DType::kBool || tensor.count() == 0) return std::nullopt;
  const int64_t columns = tensor.dims().back(), rows = tensor.dims()[tensor.rank() - 2];
  int64_t shift = -1;
  while (shift + 1 < columns && element_as_i64(tensor, shift + 1)) shift++;
  for (int64_t i = 0; i < tensor.count(); i++)
    if ((element_as_i64(tensor, i) != 0) != (i % columns <= i / columns % rows + shift)) return std::nullopt;
  return static_cast<double>(shift);
}

// The same for a slice of such a table, with or without axes of size 1.
std::optional<Dim> diagonal(const Match& m, Expr mask) {
  Dim shift = 0;
  Expr x = mask;
  for (; m.is(x, Op::kSlice) || m.is(x, Op::kReshape); x = m.input(x, 0)) {
    Expr table = m.input(x, 0);
    if (x.rank() < 2 || table.rank() < 2) return std::nullopt;
    if (m.is(x, Op::kReshape)) {
      if (!(table.dim(-1) == x.dim(-1)) || !(table.dim(-2) == x.dim(-2))) return std::nullopt;
      continue;
    }
    const Attrs& slice = m.node(x).attrs;
    const std::vector<Dim>& starts = slice.dims("starts");
    for (size_t i = 0; i < starts.size(); i++) {
      if (slice.i64s("steps")[i] != 1 || m.graph().range(starts[i]).lo < 0) return std::nullopt;
      int64_t from_end = static_cast<int64_t>(table.rank()) - slice.i64s("axes")[i];
      if (from_end <= 2) shift += from_end == 2 ? starts[i] : Dim(0) - starts[i];
    }
  }
  auto found = m.found_in(x, diagonal);
  return found ? std::optional(shift + static_cast<int64_t>(*found)) : std::nullopt;
}

// Whether a mask compares positions: a <= b or a < b of functions of i and j, or a triangle. Notes it in `out` if so.
bool compares_positions(const Match& m, Expr mask, const std::vector<Dim>& scores, Masks& out) {
  const Node& node = m.node(mask);
  if (mask.rank() < 2 || !std::equal(scores.end() - 2, scores.end(), mask.dims().end() - 2)) return false;
  if (auto shift = diagonal(m, mask); shift && !out.right) {
    out.right = *shift;
    out.of_positions.push_back(mask);
    return true;
  }
  if (node.op != Op::kLe && node.op != Op::kLt) return false;
  const Affine *a = m.affine(m.input(mask, 0)), *b = m.affine(m.input(mask, 1));
  if (!a || !b) return false;
  Affine slack = *b - *a;  // a key is allowed if it is >= 0, or > 0 for a < b
  size_t rank = slack.steps.size();
  if (rank < 2 || !std::all_of(slack.steps.begin(), slack.steps.end() - 2, [](const Dim& step) { return step.is(0); }))
    return false;
  const Dim& by_key = slack.steps[rank - 1];
  Dim by_query = scores[scores.size() - 2].is(1) ? Dim(0) - by_key : slack.steps[rank - 2];
  Dim bound = node.op == Op::kLt ? slack.offset - 1 : slack.offset;
  std::optional<Dim>& side = by_key.is(-1) ? out.right : out.left;
  if (!(by_query + by_key).is(0) || !(by_key.is(-1) || by_key.is(1)) || side) return false;
  side = bound;
  out.of_positions.push_back(mask);
  return true;
}

// Takes a conjunction apart; each part counts once.
Masks parts_of(const Match& m, Expr mask, const std::vector<Dim>& scores) {
  Masks masks;
  std::vector<Expr> parts;
  auto meet = [&](Expr part) {
    bool is_seen = std::any_of(parts.begin(), parts.end(), [&](Expr seen) { return seen.value() == part.value(); });
    if (!is_seen) parts.push_back(part);
  };
  if (mask) meet(mask);
  for (size_t next = 0; next < parts.size();) {  // the list grows on the way
    Expr part = parts[next++];
    if (m.is(part, Op::kBitAnd) || m.is(part, Op::kBroadcastTo)) {
      for (size_t i = 0; i < m.node(part).in.size(); i++) meet(m.input(part, i));
    } else if (m.splat(part) != 1 && !compares_positions(m, part, scores, masks)) {
      masks.others.push_back(part);
    }
  }
  return masks;
}

// Turns bounds on positions into attributes, if one of the two alignments makes them numbers. If not, they stay masks.
void align(Masks& masks, const Dim& queries, const Dim& keys, NamedAttrs& attrs) {
  if (masks.of_positions.empty()) return;
  auto is_count = [](const Dim& dim) { return dim.is_literal() && dim.literal() >= 0; };
  for (const auto& [name, shift] : {std::pair("lower_right", keys - queries), {"upper_left", Dim(0)}}) {
    Dim right = masks.right ? *masks.right - shift : Dim(0), left = masks.left ? *masks.left + shift : Dim(0);
    if (!is_count(right) || !is_count(left)) continue;
    attrs.emplace_back("align", std::string(name));
    if (masks.right && right.is(0)) attrs.emplace_back("causal", int64_t{1});
    if (masks.right && !right.is(0)) attrs.emplace_back("window_right", right.literal());
    if (masks.left) attrs.emplace_back("window_left", left.literal());
    return;
  }
  masks.others.insert(masks.others.end(), masks.of_positions.begin(), masks.of_positions.end());
}

Expr conjunction(const std::vector<Expr>& masks) {
  Expr all;
  for (Expr mask : masks) all = all ? logical_and(all, mask) : mask;
  return all;
}

// ---- probabilities ----

struct Probabilities {
  Expr softmax;
  Expr sinks;               // [H], or absent
  bool zeroes_nan = false;  // rows of NaN are zeroed
};

// p before it was rounded to a half; p itself if it was not rounded, or has another use.
Expr take_rounding(const Match& m, Expr p) {
  bool rounds = m.is(p, Op::kCast) && is_half(p.dtype()) && m.input(p, 0).dtype() == DType::kF32 && m.take(p);
  return rounds ? m.input(p, 0) : p;
}

// where(p = p, p, 0) -> p; absent if p is something else, or has another use.
Expr take_nan_guard(const Match& m, Expr p) {
  if (!m.is(p, Op::kWhere) || !m.take(p)) return Expr();
  Expr inner = m.input(p, 1), test = m.input(p, 0);
  bool tests_nan =
      m.is(test, Op::kEq) && m.input(test, 0).value() == inner.value() && m.input(test, 1).value() == inner.value();
  return tests_nan && m.splat(m.input(p, 2)) == 0 && m.take(test) ? inner : Expr();
}

// A column with one number per head, [1, H, 1, 1] broadcast -> [H]
Expr numbers_of_heads(const Match& m, Expr column) {
  if (m.is(column, Op::kBroadcastTo)) column = m.input(column, 0);
  if (column.rank() < 3 || column.rank() > 4 || !column.dim(-1).is(1) || !column.dim(-2).is(1)) return Expr();
  if (column.rank() == 4 && !column.dim(0).is(1)) return Expr();
  return reshape(column, {column.dim(-3)});
}

bool is_over_last_axis(const Match& m, Expr softmax) {
  return m.node(softmax).attrs.i64("axis") + 1 == std::ssize(softmax.dims());
}

// softmax(concat(scores, sinks)) without its last column -> softmax(scores) with sinks
Expr take_sinks(const Match& m, Expr p, Expr& sinks) {
  Expr softmax = m.input(p, 0);
  if (!m.is(p, Op::kSlice) || !m.is(softmax, Op::kSoftmax) || p.rank() != 4 || !is_over_last_axis(m, softmax))
    return Expr();
  Expr joined = m.input(softmax, 0);
  if (!m.is(joined, Op::kConcat) || m.node(joined).in.size() != 2 || m.node(joined).attrs.i64("axis") != 3)
    return Expr();
  const Attrs& slice = m.node(p).attrs;
  Expr scores = m.input(joined, 0), column = m.input(joined, 1);
  bool drops_column = slice.i64s("axes") == Axes{3} && slice.i64s("steps") == Axes{1} &&
                      slice.dims("starts")[0].is(0) && p.dims() == scores.dims() && column.dim(-1).is(1);
  if (!drops_column || !m.take(p) || !m.take(softmax) || !m.take(joined)) return Expr();
  sinks = numbers_of_heads(m, column);
  return sinks ? scores : Expr();
}

// The scores that p is the softmax of, over keys. nullopt if p is something else, or has another use.
std::optional<Probabilities> take_probabilities(const Match& m, Expr p, Expr& scores) {
  Probabilities found;
  p = take_rounding(m, p);
  if (Expr inner = take_nan_guard(m, p)) found.zeroes_nan = true, p = inner;
  scores = take_sinks(m, p, found.sinks);
  if (scores) return found;
  if (!m.is(p, Op::kSoftmax) || !is_over_last_axis(m, p) || !m.take(p)) return std::nullopt;
  scores = m.input(p, 0);
  return found;
}

std::string_view empty_row(const Scores& scores, bool zeroes_nan) {
  if (scores.mask && std::isfinite(scores.fill)) return "mean";
  return zeroes_nan ? "zero" : "nan";
}

// ---- the rules ----

// matmul(probabilities, v) -> attention(q, k, v)
Expr form_attention(const Match& m) {
  Expr p = m.in(0), v = m.in(1), value;
  if (p.rank() < 3 || m.attrs().flag("transpose_a") || m.attrs().flag("transpose_b")) return Expr();
  auto found = take_probabilities(m, p, value);
  if (!found) return Expr();
  auto s = take_scores(m, value);
  if (!s) return m.miss("the scores are not a product of q and k, or have another use");
  if (v.rank() != s->q.rank()) return m.miss("v has another rank than q");
  const std::vector<Dim> result_dims = m.anchor().dims(), score_dims = value.dims(), dims4 = as_four_dims(score_dims);
  Expr q = with_heads(s->q, dims4), k = with_heads(s->k, dims4);
  NamedAttrs attrs{
      {"scale", s->scale}, {"softcap", s->softcap}, {"empty_row", std::string(empty_row(*s, found->zeroes_nan))}};
  Masks masks = parts_of(m, s->mask, score_dims);
  align(masks, q.dim(2), k.dim(2), attrs);
  Expr mask = regrouped(conjunction(masks.others), score_dims, dims4), bias = regrouped(s->bias, score_dims, dims4);
  if (q.dtype() == DType::kF32) v = in_f32(v);  // queries that a factor of their head has made f32
  Expr y =
      m.builder().op(Op::kAttention, {q, k, with_heads(v, dims4), mask, bias, Expr(), Expr(), found->sinks}, attrs);
  if (m.is_refused(y)) return m.miss("no kernel for the attention");
  if (y.valid()) y = cast(y, m.anchor().dtype());
  return y.valid() && !(y.dims() == result_dims) ? reshape(y, result_dims) : y;
}

// The heads before they were repeated: [B,G,1,S,D] as [B,G,S,D].
Expr heads_of(Expr split) {
  return reshape(split, {split.dim(0), split.dim(1), split.dim(3), split.dim(4)});
}

}  // namespace

void add_attention_rules(RuleSet& rules) {
  rules.add(close, "attention", {Op::kMatmul}, form_attention, {.depth = 8});
  // attention(q, k, v) where k and v are repeated for each head of a group -> attention of the heads before the repeat
  Pattern q = any(), k = any(), v = any();
  auto repeated = [](const Pattern& x) {
    return op(Op::kReshape, {op(Op::kBroadcastTo, {x})}).where("one head repeated", repeats_heads);
  };
  Pattern grouped = op(Op::kAttention, {q, repeated(k), repeated(v)}).with("layout", std::string("bhsd"));
  rules.add(exact, "attention_groups", grouped, [=](const Match& m) {
    if (!(m[k].dim(1) == m[v].dim(1))) return m.miss("k and v have other numbers of heads");
    return m.rebuilt(m.anchor(), {{1, heads_of(m[k])}, {2, heads_of(m[v])}})[0];
  });
}

}  // namespace rlx
