// SPDX-License-Identifier: Apache-2.0
// Attention: from the product with v inwards, each link of the scores' chain is absorbed by one small
// function, in whatever order the links stand; what is collected on the way becomes attributes and operands.
#include <algorithm>
#include <cmath>

#include "rules/rules.h"

namespace rlx {

namespace {

// What the walk from softmax to the product q * k has collected.
struct Scores {
  Expr q, k;  // rank 3 or 4, k not transposed
  double scale = 1;
  double softcap = 0;
  std::vector<Expr> masks;     // boolean, true = attend
  std::vector<Expr> summands;  // those of the masks that were added, as they were
  bool keeps_floats = false;   // masks that are added stay floats
  std::vector<Expr> biases;    // added after scale and softcap
  double fill = NAN;           // what the masks put in place of a score: -inf or a finite number; NAN: no mask yet
  std::vector<Dim> dims;       // of the scores
};

class Walk {
 public:
  explicit Walk(const Match& match) : m_(match) {}

  // Whether `value` is a chain of links that ends in a product of two run-time values.
  bool scores(Expr value, Scores& out) {
    if (!value || value.rank() < 3) return false;
    if (out.dims.empty()) out.dims = value.dims();
    if (!(value.dims() == out.dims)) return miss("a link changes the shape of the scores");
    const Node& node = m_.node(value);
    if (!m_.is_inner(value) && !m_.may_be_repeated(value)) return miss("the scores have another use");
    switch (node.op) {
      case Op::kMatmul: return product(node, out);
      case Op::kMul: return scaled(node, out) || softcapped(node, out);
      case Op::kAdd: return masked_by_sum(node, out);
      case Op::kWhere: return masked_by_choice(node, out);
      case Op::kCast: return is_widening(node) && scores(in(node, 0), out);
      default: return false;
    }
  }

 private:
  bool miss(std::string_view why) {
    m_.miss(why);
    return false;
  }
  Expr in(const Node& node, size_t i) const { return m_.builder().wrap(node.in[i]); }
  // Between halves and f32, either way: attention is computed wide and rounded once.
  bool is_widening(const Node& node) const {
    DType from = m_.graph().type(node.in[0]).dtype, to = node.out[0].dtype;
    return (is_half(from) && to == DType::kF32) || (from == DType::kF32 && is_half(to));
  }
  std::optional<double> splat(Expr x) const { return m_.splat(x); }

  // matmul(q, kt): k is kt with its last two axes exchanged
  bool product(const Node& node, Scores& out) {
    Expr q = in(node, 0), kt = in(node, 1);
    if (m_.is_static(q) || m_.is_static(kt)) return miss("a side of q k' is a constant");
    if (node.attrs.flag("transpose_a") || q.rank() != kt.rank() || q.rank() > 4) return miss("not a product of heads");
    for (size_t i = 0; i + 2 < q.rank(); i++) {
      bool serves_all = i == 1 && q.rank() == 4 && kt.dims()[i].is(1);  // one head of keys: the smallest of groups
      if (!serves_all && !(q.dims()[i] == kt.dims()[i])) return miss("q and k differ in batch or heads");
    }
    out.q = q;
    out.k = kt;
    if (!node.attrs.flag("transpose_b")) {
      Axes perm = trailing_axes(0, kt.rank());
      std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
      out.k = transpose(kt, perm);
    }
    return true;
  }

  // scores * s
  bool scaled(const Node& node, Scores& out) {
    for (size_t i = 0; i < 2; i++) {
      auto s = splat(in(node, i));
      if (!s || !std::isfinite(*s)) continue;
      Scores inner = out;
      if (!scores(in(node, 1 - i), inner)) return false;
      // What lies inside is scaled too; a mask there fills before the scale, which -inf and huge numbers do not notice.
      for (size_t k = out.biases.size(); k < inner.biases.size(); k++) inner.biases[k] = inner.biases[k] * *s;
      if (inner.softcap != 0 && out.softcap == 0) return miss("a scale outside the softcap");
      if (inner.masks.size() > out.masks.size()) {
        if (!(*s > 0) || !is_fill(inner.fill * *s, DType::kF32)) return miss("a scale that makes a mask no mask");
        inner.fill *= *s;
      }
      inner.scale *= *s;
      out = inner;
      return true;
    }
    return false;
  }

  // c * tanh(scores / c)
  bool softcapped(const Node& node, Scores& out) {
    for (size_t i = 0; i < 2; i++) {
      auto cap = splat(in(node, i));
      Expr bounded = in(node, 1 - i);
      if (!cap || *cap <= 0 || m_.node(bounded).op != Op::kTanh) continue;
      Scores inner = out;
      if (!scores(in(m_.node(bounded), 0), inner)) return false;
      if (inner.softcap != out.softcap) return miss("one softcap inside another");
      if (inner.masks.size() != out.masks.size() || inner.biases.size() != out.biases.size())
        return miss("a mask inside the softcap");
      inner.scale *= *cap;  // scale holds s1; softcap needs s1 * cap before the division by cap
      inner.softcap = *cap;
      out = inner;
      return true;
    }
    return false;
  }

  // scores + m: a boolean mask if m is one in disguise, else a bias
  bool masked_by_sum(const Node& node, Scores& out) {
    for (size_t i = 0; i < 2; i++) {
      Scores inner = out;
      Expr term = in(node, 1 - i);
      if (!scores(in(node, i), inner)) continue;
      if (!fits(term, out.dims)) return miss("a mask enlarges the scores");
      std::optional<Disguised> found = disguised(term);
      if (found && same_fill(found->fill, inner)) {
        inner.masks.push_back(found->mask);
        inner.summands.push_back(term);
        if (found->bias) inner.biases.push_back(found->bias);
      } else if (splat(term) != 0) {
        if (found && std::isfinite(found->fill) && !as_floats(inner)) return miss("two masks of finite fills");
        inner.biases.push_back(term);
      }
      out = inner;
      return true;
    }
    return false;
  }

  // Two finite fills that are added make -inf where both apply, so that such rows share among some keys only: no
  // boolean says that, and the masks stay the floats that they were.
  static bool as_floats(Scores& out) {
    if (out.summands.size() != out.masks.size()) return false;
    out.biases.insert(out.biases.end(), out.summands.begin(), out.summands.end());
    out.masks.clear();
    out.summands.clear();
    out.fill = NAN;
    out.keeps_floats = true;
    return true;
  }

  // where(M, scores, NEG), where(not M, NEG, scores)
  bool masked_by_choice(const Node& node, Scores& out) {
    for (size_t i = 1; i < 3; i++) {
      auto fill = splat(in(node, 3 - i));
      if (!fill || !is_fill(*fill, node.out[0].dtype)) continue;
      Scores inner = out;
      if (!scores(in(node, i), inner) || !same_fill(*fill, inner)) return false;
      inner.masks.push_back(i == 1 ? in(node, 0) : logical_not(in(node, 0)));
      out = inner;
      return true;
    }
    return false;
  }

  // What a float that is added to the scores says as a mask.
  struct Disguised {
    Expr mask, bias;  // where the mask is true
    double fill;
  };
  std::optional<Disguised> disguised(Expr term) const {
    if (auto found = chosen(term)) return found;
    if (auto found = complement(term)) return found;
    return constant_mask(term);
  }

  // where(M, bias, NEG)
  std::optional<Disguised> chosen(Expr term) const {
    const Node& node = m_.node(term);
    if (node.op != Op::kWhere) return std::nullopt;
    auto fill = splat(in(node, 2));
    if (!fill || !is_fill(*fill, term.dtype())) return std::nullopt;
    if (splat(in(node, 1)) == 0) return Disguised{in(node, 0), Expr(), *fill};
    return std::isinf(*fill) ? std::optional(Disguised{in(node, 0), in(node, 1), *fill}) : std::nullopt;
  }

  // (1 - cast(M)) * NEG, M boolean: an integer M may hold more than 0 and 1, and 0 * -inf is NaN
  std::optional<Disguised> complement(Expr term) const {
    const Node& product = m_.node(term);
    if (product.op != Op::kMul) return std::nullopt;
    for (size_t i = 0; i < 2; i++) {
      auto fill = splat(in(product, i));
      const Node& rest = m_.node(in(product, 1 - i));
      if (!fill || !is_fill(*fill, term.dtype()) || std::isinf(*fill) || rest.op != Op::kSub || splat(in(rest, 0)) != 1)
        continue;
      const Node& number = m_.node(in(rest, 1));
      if (number.op == Op::kCast && m_.graph().type(number.in[0]).dtype == DType::kBool)
        return Disguised{in(number, 0), Expr(), *fill};
    }
    return std::nullopt;
  }

  // A constant of zeros and one fill.
  std::optional<Disguised> constant_mask(Expr term) const {
    const Tensor* tensor = m_.graph().constant(term.value());
    if (!tensor || is_block(tensor->dtype())) return std::nullopt;
    double fill = 0;
    for (int64_t i = 0; i < tensor->count(); i++) {
      double element = element_as_f64(*tensor, i);
      if (element == 0) continue;
      if (!is_fill(element, term.dtype()) || (fill != 0 && element != fill)) return std::nullopt;
      fill = element;
    }
    return fill != 0 ? std::optional(Disguised{equal(term, 0.0), Expr(), fill}) : std::nullopt;
  }

  // So low that no score comes near it; f16 holds nothing lower than -65504.
  static bool is_fill(double value, DType dtype) { return value <= (dtype == DType::kF16 ? -6e4 : -1e9); }
  // Whether a mask of this fill may join the others as a boolean.
  static bool same_fill(double fill, Scores& out) {
    if (out.keeps_floats) return false;
    if (std::isnan(out.fill)) out.fill = fill;
    return out.fill == fill && (std::isinf(fill) || out.masks.empty());
  }

  static bool fits(Expr term, const std::vector<Dim>& dims) {
    if (term.rank() > dims.size()) return false;
    for (size_t i = 0; i < term.rank(); i++) {
      const Dim &dim = term.dims()[term.rank() - 1 - i], &target = dims[dims.size() - 1 - i];
      if (!dim.is(1) && !(dim == target)) return false;
    }
    return true;
  }

  const Match& m_;
};

// ---- q, k, v ----

// reshape(broadcast_to(reshape(z, [B,G,1,S,D]), [B,G,R,S,D]), [B,G*R,S,D]) -> z
Expr ungrouped(const Match& m, Expr k) {
  const Node& merged = m.node(k);
  if (merged.op != Op::kReshape || k.rank() != 4) return Expr();
  const Node& wide = m.graph().node(merged.in[0]);
  if (wide.op != Op::kBroadcastTo || wide.out[0].rank() != 5) return Expr();
  const Node& split = m.graph().node(wide.in[0]);
  const std::vector<Dim>& from = split.out[0].dims;
  if (from.size() != 5 || !from[2].is(1)) return Expr();
  for (size_t i : {0, 1, 3, 4})
    if (!(from[i] == wide.out[0].dims[i])) return Expr();
  return reshape(m.builder().wrap(wide.in[0]), {from[0], from[1], from[3], from[4]});
}

Expr with_head_axis(Expr x) {
  return x.rank() == 4 ? x : reshape(x, {x.dim(0), 1, x.dim(1), x.dim(2)});
}

Expr conjunction(const std::vector<Expr>& masks) {
  Expr all;
  for (Expr mask : masks) all = all ? logical_and(all, mask) : mask;
  return all;
}

Expr total(const std::vector<Expr>& biases) {
  Expr sum;
  for (Expr bias : biases) sum = sum ? sum + bias : bias;
  return sum;
}

// A mask or bias of rank 3 belongs to scores of rank 3: [B*H, Sq, Sk] -> [B*H, 1, Sq, Sk]
Expr for_rank4(Expr term, size_t rank) {
  if (!term || rank == 4 || term.rank() < 3) return term;
  return reshape(term, {term.dim(0), 1, term.dim(1), term.dim(2)});
}

// ---- masks in normal form ----

// What a conjunction of masks says of the positions of query i and key j, and what is left to look up.
struct Masks {
  std::optional<Dim> right, left;  // allowed only where j <= i + right, j >= i - left
  std::vector<Expr> of_positions;  // the masks that say so
  std::vector<Expr> others;
  std::vector<Value> seen;
};

// Of a constant lower triangle: true where j <= i + the result.
std::optional<int64_t> diagonal(const Tensor& tensor) {
  if (tensor.rank() < 2 || tensor.dtype() != DType::kBool || tensor.count() == 0) return std::nullopt;
  const int64_t columns = tensor.dims().back(), rows = tensor.dims()[tensor.rank() - 2];
  int64_t shift = -1;
  while (shift + 1 < columns && element_as_i64(tensor, shift + 1)) shift++;
  if (shift + 1 == columns) return std::nullopt;  // the first query sees all: by its length, not by its place
  for (int64_t i = 0; i < tensor.count(); i++)
    if ((element_as_i64(tensor, i) != 0) != (i % columns <= i / columns % rows + shift)) return std::nullopt;
  return shift;
}

// The same of a table of it, sliced and with axes of 1 around.
std::optional<Dim> diagonal(const Match& m, Expr mask) {
  const Node& node = m.node(mask);
  if (const Tensor* tensor = m.graph().constant(mask.value())) {
    auto shift = diagonal(*tensor);
    return shift ? std::optional<Dim>(*shift) : std::nullopt;
  }
  if (node.op != Op::kSlice && node.op != Op::kReshape) return std::nullopt;
  Expr x = m.builder().wrap(node.in[0]);
  auto inner = x.rank() >= 2 && mask.rank() >= 2 ? diagonal(m, x) : std::nullopt;
  if (!inner) return inner;
  if (node.op == Op::kReshape) return x.dim(-1) == mask.dim(-1) && x.dim(-2) == mask.dim(-2) ? inner : std::nullopt;
  const std::vector<Dim>& starts = node.attrs.dims("starts");
  for (size_t i = 0; i < starts.size(); i++) {
    if (node.attrs.i64s("steps")[i] != 1) return std::nullopt;
    if (m.graph().range(starts[i]).lo < 0) return std::nullopt;
    int64_t from_end = static_cast<int64_t>(x.rank()) - node.attrs.i64s("axes")[i];
    *inner += from_end == 2 ? starts[i] : from_end == 1 ? Dim(0) - starts[i] : Dim(0);
  }
  return inner;
}

// a <= b or a < b between i and j alone, or a table that says as much
bool compares_positions(const Match& m, Expr mask, const std::vector<Dim>& scores, Masks& out) {
  const Node& node = m.node(mask);
  if (auto shift = diagonal(m, mask); shift && !out.right) {
    out.right = *shift;
    out.of_positions.push_back(mask);
    return true;
  }
  if (node.op != Op::kLe && node.op != Op::kLt) return false;
  const Affine *a = m.affine(m.input(mask, 0)), *b = m.affine(m.input(mask, 1));
  if (!a || !b) return false;
  Affine slack = *b - *a;  // not negative where allowed; for a < b, positive
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

void take_apart(const Match& m, Expr mask, const std::vector<Dim>& scores, Masks& out) {
  if (std::find(out.seen.begin(), out.seen.end(), mask.value()) != out.seen.end()) return;
  out.seen.push_back(mask.value());
  const Node& node = m.node(mask);
  if (node.op == Op::kBitAnd || node.op == Op::kBroadcastTo) {
    for (Value part : node.in) take_apart(m, m.builder().wrap(part), scores, out);
  } else if (m.splat(mask) != 1 && !compares_positions(m, mask, scores, out)) {
    out.others.push_back(mask);
  }
}

// Positions as attributes of attention, by whichever alignment makes the bounds numbers; else they stay masks.
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

// ---- the rule ----

// Rounded to halves, or as it was.
Expr before_rounding(const Match& m, Expr p) {
  bool rounds = m.is(p, Op::kCast) && is_half(p.dtype()) && m.input(p, 0).dtype() == DType::kF32 && m.is_inner(p);
  return rounds ? m.input(p, 0) : p;
}

// p = softmax(scores), or that with its NaN rows zeroed: where(p = p, p, 0)
Expr probabilities(const Match& m, Expr p, bool& guarded) {
  p = before_rounding(m, p);
  const Node& node = m.node(p);
  guarded = node.op == Op::kWhere;
  if (!guarded) return p;
  Expr inner = m.builder().wrap(node.in[1]);
  const Node& test = m.graph().node(node.in[0]);
  auto zero = m.splat(m.builder().wrap(node.in[2]));
  bool tests_nan = test.op == Op::kEq && test.in[0] == inner.value() && test.in[1] == inner.value();
  return tests_nan && zero && *zero == 0 ? inner : Expr();
}

// Whether nothing else reads the probabilities; in where(p = p, p, 0) three nodes do.
bool is_consumed(const Match& m, Expr p, bool guarded) {
  if (!m.is_inner(m.in(0)) || (guarded && !m.is_inner(m.input(m.in(0), 0)))) return false;
  return p.value() == m.in(0).value() || m.is_inner(p);
}

std::string_view empty_row(const Scores& scores, bool guarded) {
  if (!std::isnan(scores.fill) && std::isfinite(scores.fill)) return "mean";
  return guarded ? "zero" : "nan";
}

Expr form_attention(const Match& m) {
  bool guarded = false;
  if (m.in(0).rank() < 3 || m.attrs().flag("transpose_a") || m.attrs().flag("transpose_b")) return Expr();
  Expr p = probabilities(m, m.in(0), guarded);
  if (!p || m.node(p).op != Op::kSoftmax) return Expr();
  const Node& softmax = m.node(p);
  if (softmax.attrs.i64("axis") + 1 != std::ssize(p.dims())) return m.miss("the softmax is not over keys");
  if (!is_consumed(m, p, guarded)) return m.miss("the probabilities have another use");
  Scores s;
  if (!Walk(m).scores(m.builder().wrap(softmax.in[0]), s)) return m.miss("the scores are no product of q and k");
  Expr v = m.in(1);
  if (v.rank() != s.q.rank()) return m.miss("v has another rank than q");
  std::vector<Dim> dims = m.anchor().dims();
  Expr q = with_head_axis(s.q), k = with_head_axis(s.k);
  v = with_head_axis(v);
  NamedAttrs attrs{{"scale", s.scale}, {"softcap", s.softcap}, {"empty_row", std::string(empty_row(s, guarded))}};
  Masks masks;
  for (Expr mask : s.masks) take_apart(m, mask, s.dims, masks);
  align(masks, q.dim(2), k.dim(2), attrs);
  Expr mask = for_rank4(conjunction(masks.others), s.q.rank()), bias = for_rank4(total(s.biases), s.q.rank());
  Expr y = m.builder().op(Op::kAttention, {q, k, v, mask, bias}, attrs);
  return y.valid() && !(y.dims() == dims) ? reshape(y, dims) : y;
}

// attention(q, k, v) where k and v are repeated for each head of a group -> attention of the heads that there are
Expr shared_heads(const Match& m) {
  Expr k = ungrouped(m, m.in(1)), v = ungrouped(m, m.in(2));
  if (!m.attrs().is("layout", "bhsd") || !k || !v || !(k.dim(1) == v.dim(1))) return Expr();
  const Node& node = m.node(m.anchor());
  std::vector<Expr> in{m.in(0), k, v};
  for (size_t i = 3; i < node.in.size(); i++) in.push_back(m.in(i));
  return m.builder().add(m.graph().info(node), in, node.attrs)[0];
}

}  // namespace

void add_score_rules(RuleSet& rules) {
  rules.add(close, "attention", std::vector{Op::kMatmul}, form_attention, 12);
  rules.add(exact, "attention_groups", std::vector{Op::kAttention}, shared_heads, 4);
}

}  // namespace rlx
