// SPDX-License-Identifier: Apache-2.0
// Layouts of attention and of what feeds it: the transposes and splits around it become its `layout`,
// so that it reads what the products wrote. Exact: no element changes.
#include <array>

#include "rules/rules.h"

namespace rlx {

namespace {

const Node* attention_of(const Match& m, Expr x, std::string_view layout) {
  if (!x || m.node(x).op != Op::kAttention || x.value().output != 0) return nullptr;
  if (!m.is_inner(x) || !m.node(x).attrs.is("layout", layout)) return nullptr;
  return &m.node(x);
}

Expr with_layout(const Match& m, const Node& attention, std::array<Expr, 3> qkv, Attrs attrs) {
  std::vector<Expr> in(qkv.begin(), qkv.end());
  for (size_t i = 3; i < attention.in.size(); i++)
    in.push_back(present(attention.in[i]) ? m.builder().wrap(attention.in[i]) : Expr());
  return m.builder().add(m.graph().info(attention), in, std::move(attrs))[0];
}

const Axes kSwapHeads{0, 2, 1, 3};  // between [B, H, S, D] and [B, S, H, D]

// transpose(attention(q, k, v), 0213) where q, k, v are such transposes themselves -> layout bshd
Expr to_bshd(const Match& m) {
  const Node* attention = attention_of(m, m.in(0), "bhsd");
  if (!attention || m.attrs().i64s("perm") != kSwapHeads) return Expr();
  std::array<Expr, 3> qkv;
  for (size_t i = 0; i < 3; i++) {
    const Node& node = m.graph().node(attention->in[i]);
    if (node.op != Op::kTranspose || node.attrs.i64s("perm") != kSwapHeads)
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

// rope(transpose(x, 0213)) -> transpose(rope(x; bshd), 0213), where attention finds it
Expr rope_before_transpose(const Match& m) {
  const Node& turned = m.node(m.in(0));
  if (turned.op != Op::kTranspose || !m.attrs().is("layout", "bhsd") || turned.attrs.i64s("perm") != kSwapHeads)
    return Expr();
  const Node& rope = m.node(m.anchor());
  std::vector<Expr> in{m.builder().wrap(turned.in[0])};
  for (size_t i = 1; i < rope.in.size(); i++) in.push_back(m.in(i));
  Expr y = m.builder().add(m.graph().info(rope), in, rope.attrs.with("layout", std::string("bshd")))[0];
  return transpose(y, kSwapHeads);
}

// rope(reshape(x, [B, S, H, D]); bshd) -> reshape(rope(x; bsx))
Expr rope_before_split(const Match& m) {
  Expr heads = m.in(0);
  const Node& split = m.node(heads);
  if (split.op != Op::kReshape || !m.attrs().is("layout", "bshd") || !heads.dim(2).is_literal()) return Expr();
  Expr x = m.builder().wrap(split.in[0]);
  if (x.rank() != 3 || !(x.dim(0) == heads.dim(0)) || !(x.dim(1) == heads.dim(1))) return Expr();
  const Node& rope = m.node(m.anchor());
  std::vector<Expr> in{x};
  for (size_t i = 1; i < rope.in.size(); i++) in.push_back(m.in(i));
  Attrs attrs = rope.attrs.with("layout", std::string("bsx")).with("num_heads", heads.dim(2).literal());
  return reshape(m.builder().add(m.graph().info(rope), in, attrs)[0], heads.dims());
}

}  // namespace

void add_attention_layout_rules(RuleSet& rules) {
  rules.add(exact, "rope_bshd", std::vector{Op::kRope}, rope_before_transpose);
  rules.add(exact, "rope_bsx", std::vector{Op::kRope}, rope_before_split);
  rules.add(exact, "attention_bshd", std::vector{Op::kTranspose}, to_bshd);
  rules.add(exact, "attention_bsx", std::vector{Op::kReshape}, to_bsx);
}

}  // namespace rlx
