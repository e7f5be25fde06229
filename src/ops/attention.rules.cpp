// SPDX-License-Identifier: Apache-2.0
// Attention (SPELLINGS.md 4): from the product with v inwards, each link of the scores' chain is absorbed by one small
// function, in whatever order the links stand; what is collected on the way becomes attributes and operands.
#include <cmath>

#include "ops/rules.h"
#include "rewrite/facts.h"

namespace rlx {

namespace {

// What the walk from softmax to the product q * k has collected.
struct Scores {
  Expr q, k;  // rank 3 or 4, k not transposed
  double scale = 1;
  double softcap = 0;
  std::vector<Expr> masks;   // boolean, true = attend
  std::vector<Expr> biases;  // added after scale and softcap
  double fill = NAN;         // what the masks put in place of a score: -inf or a finite number; NAN: no mask yet
  std::vector<Dim> dims;     // of the scores
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
    if (m_.rewriter().used_elsewhere(value.value()) && !m_.rewriter().may_be_repeated(value.value()))
      return miss("the scores have another use");
    switch (node.op) {
      case Op::kMatmul: return product(node, out);
      case Op::kMul: return scaled(node, out) || softcapped(node, out);
      case Op::kAdd: return masked_by_sum(node, out);
      case Op::kWhere: return masked_by_choice(node, out);
      default: return false;
    }
  }

 private:
  bool miss(std::string_view why) {
    m_.miss(why);
    return false;
  }
  Expr in(const Node& node, size_t i) const { return m_.builder().wrap(node.in[i]); }
  std::optional<double> splat(Expr x) const { return splat_value(m_.graph(), x.value()); }

  // matmul(q, kt): k is kt with its last two axes exchanged
  bool product(const Node& node, Scores& out) {
    Expr q = in(node, 0), kt = in(node, 1);
    if (m_.rewriter().is_static(q.value()) || m_.rewriter().is_static(kt.value()))
      return miss("a side of q k' is a constant");
    if (node.attrs.flag("transpose_a") || q.rank() != kt.rank() || q.rank() > 4) return miss("not a product of heads");
    for (size_t i = 0; i + 2 < q.rank(); i++)
      if (!(q.dim(static_cast<int64_t>(i)) == kt.dim(static_cast<int64_t>(i))))
        return miss("q and k differ in batch or heads");
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
      if (*s <= 0 && inner.masks.size() > out.masks.size()) return miss("a scale that turns a mask round");
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
      if (inner.masks.size() != out.masks.size() || inner.biases.size() != out.biases.size())
        return miss("a mask inside the softcap");
      inner.scale *= *cap;  // scale holds s1; softcap needs s1 * cap before the division by cap
      inner.softcap = *cap;
      out = inner;
      return true;
    }
    return false;
  }

  // scores + m: a boolean mask if m is where(M, 0, NEG), else a bias
  bool masked_by_sum(const Node& node, Scores& out) {
    for (size_t i = 0; i < 2; i++) {
      Scores inner = out;
      Expr term = in(node, 1 - i);
      if (!scores(in(node, i), inner)) continue;
      if (!fits(term, out.dims)) return miss("a mask enlarges the scores");
      if (!add_mask_term(term, inner)) inner.biases.push_back(term);
      out = inner;
      return true;
    }
    return false;
  }

  // where(M, scores, NEG)
  bool masked_by_choice(const Node& node, Scores& out) {
    auto fill = splat(in(node, 2));
    if (!fill || !is_fill(*fill)) return false;
    Scores inner = out;
    if (!scores(in(node, 1), inner) || !same_fill(*fill, inner)) return false;
    inner.masks.push_back(in(node, 0));
    out = inner;
    return true;
  }

  bool add_mask_term(Expr term, Scores& out) {
    const Node& node = m_.node(term);
    if (node.op != Op::kWhere) return false;
    auto yes = splat(in(node, 1)), no = splat(in(node, 2));
    if (!yes || !no || *yes != 0 || !is_fill(*no) || !same_fill(*no, out)) return false;
    out.masks.push_back(in(node, 0));
    return true;
  }

  static bool is_fill(double value) { return value <= -1e9; }
  // Two finite fills that are added reach -inf together: such masks stay floats.
  bool same_fill(double fill, Scores& out) {
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

// ---- the rule ----

// p = softmax(scores), or that with its NaN rows zeroed: where(p = p, p, 0)
Expr probabilities(const Match& m, Expr p, bool& guarded) {
  const Node& node = m.node(p);
  guarded = node.op == Op::kWhere;
  if (!guarded) return p;
  Expr inner = m.builder().wrap(node.in[1]);
  const Node& test = m.graph().node(node.in[0]);
  auto zero = splat_value(m.graph(), node.in[2]);
  bool tests_nan = test.op == Op::kEq && test.in[0] == inner.value() && test.in[1] == inner.value();
  return tests_nan && zero && *zero == 0 ? inner : Expr();
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
  int64_t axis = softmax.attrs.i64("axis");
  if (axis != -1 && axis != static_cast<int64_t>(p.rank()) - 1) return m.miss("the softmax is not over keys");
  if (m.rewriter().used_elsewhere(p.value()) || m.rewriter().used_elsewhere(m.in(0).value()))
    return m.miss("the probabilities have another use");
  Scores s;
  if (!Walk(m).scores(m.builder().wrap(softmax.in[0]), s)) return m.miss("the scores are no product of q and k");
  Expr v = m.in(1);
  if (v.rank() != s.q.rank()) return m.miss("v has another rank than q");
  std::vector<Dim> dims = m.anchor().dims();
  Expr q = with_head_axis(s.q), k = with_head_axis(s.k);
  v = with_head_axis(v);
  if (Expr small_k = ungrouped(m, k), small_v = ungrouped(m, v); small_k && small_v && small_k.dim(1) == small_v.dim(1))
    k = small_k, v = small_v;
  NamedAttrs attrs{{"scale", s.scale}, {"softcap", s.softcap}, {"empty_row", std::string(empty_row(s, guarded))}};
  Expr mask = for_rank4(conjunction(s.masks), s.q.rank()), bias = for_rank4(total(s.biases), s.q.rank());
  Expr y = m.builder().op(Op::kAttention, {q, k, v, mask, bias}, std::move(attrs));
  return y.valid() && !(y.dims() == dims) ? reshape(y, dims) : y;
}

// ---- layouts ----

const Node* attention_of(const Match& m, Expr x, std::string_view layout) {
  if (!x || m.node(x).op != Op::kAttention || x.value().output != 0) return nullptr;
  if (m.rewriter().used_elsewhere(x.value()) || !m.node(x).attrs.is("layout", layout)) return nullptr;
  return &m.node(x);
}

Expr with_layout(const Match& m, const Node& attention, std::array<Expr, 3> qkv, Attrs attrs) {
  std::vector<Expr> in(qkv.begin(), qkv.end());
  for (size_t i = 3; i < attention.in.size(); i++)
    in.push_back(present(attention.in[i]) ? m.builder().wrap(attention.in[i]) : Expr());
  return m.builder().add(m.graph().info(attention), in, std::move(attrs))[0];
}

// transpose(attention(q, k, v), 0213) where q, k, v are such transposes themselves -> layout bshd
Expr to_bshd(const Match& m) {
  static const Axes kSwap{0, 2, 1, 3};
  const Node* attention = attention_of(m, m.in(0), "bhsd");
  if (!attention || m.attrs().i64s("perm") != kSwap) return Expr();
  std::array<Expr, 3> qkv;
  for (size_t i = 0; i < 3; i++) {
    const Node& node = m.graph().node(attention->in[i]);
    if (node.op != Op::kTranspose || node.attrs.i64s("perm") != kSwap)
      return m.miss("q, k or v has its heads in front");
    qkv[i] = m.builder().wrap(node.in[0]);
  }
  return with_layout(m, *attention, qkv, attention->attrs.with("layout", std::string("bshd")));
}

// reshape(attention(bshd), [B, S, H*D]) where q, k, v are splits of [B, S, H*D] -> layout bsx
Expr to_bsx(const Match& m) {
  const Node* attention = attention_of(m, m.in(0), "bshd");
  Expr y = m.in(0);
  if (!attention || m.anchor().rank() != 3 || !(m.anchor().dim(1) == y.dim(1))) return Expr();
  std::array<Expr, 3> qkv;
  for (size_t i = 0; i < 3; i++) {
    const Node& node = m.graph().node(attention->in[i]);
    const std::vector<Dim>& split = node.out[0].dims;
    if (node.op != Op::kReshape || m.graph().type(node.in[0]).rank() != 3)
      return m.miss("q, k or v is no split of its last axis");
    qkv[i] = m.builder().wrap(node.in[0]);
    if (!(qkv[i].dim(0) == split[0]) || !(qkv[i].dim(1) == split[1]) || !split[2].is_literal())
      return m.miss("q, k or v is no split of its last axis");
  }
  auto heads = [&](size_t i) { return AttrValue(m.graph().type(attention->in[i]).dims[2].literal()); };
  Attrs attrs =
      attention->attrs.with("layout", std::string("bsx")).with("num_heads", heads(0)).with("num_kv_heads", heads(1));
  return with_layout(m, *attention, qkv, std::move(attrs));
}

}  // namespace

void add_score_rules(RuleSet& rules) {
  rules.add(close, "attention", std::vector{Op::kMatmul}, form_attention);
}

void add_attention_layout_rules(RuleSet& rules) {
  rules.add(exact, "attention_bshd", std::vector{Op::kTranspose}, to_bshd);
  rules.add(exact, "attention_bsx", std::vector{Op::kReshape}, to_bsx);
}

}  // namespace rlx
