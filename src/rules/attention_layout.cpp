// SPDX-License-Identifier: Apache-2.0
// Layouts of attention and rope: the transposes and splits around them become the attribute `layout`. So attention
// reads the results of the products in place. All rules are exact: no element changes.
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// The permutation between [B, H, S, D] and [B, S, H, D].
static Axes swap_heads() {
  return {0, 2, 1, 3};
}

static Pattern swapped(const Pattern& x) {
  return op(Op::kTranspose, {x}).with("perm", swap_heads());
}

// [B, S, H*D] as [B, S, H, D]
static Pattern split(const Pattern& x) {
  return op(Op::kReshape, {x}).where("a split of its last axis", [](const Match& m, Expr heads) {
    Expr x = m.input(heads, 0);
    return x.rank() == 3 && heads.rank() == 4 && x.dim(0) == heads.dim(0) && x.dim(1) == heads.dim(1) &&
           heads.dim(2).is_literal();
  });
}

static Attrs with_layout(const Match& m, Expr x, const char* layout) {
  return m.node(x).attrs.with("layout", std::string(layout));
}

void add_attention_layout_rules(RuleSet& rules) {
  const AttrValue bhsd = std::string("bhsd"), bshd = std::string("bshd");
  Pattern x = any(), q = any(), k = any(), v = any();
  // rope(swapped(x)) -> swapped(rope(x; bshd)), where attention finds it
  rules.add(exact, "rope_bshd", op(Op::kRope, {swapped(x)}).with("layout", bhsd), [=](const Match& m) {
    return transpose(m.rebuilt(m.anchor(), {{0, m[x]}}, with_layout(m, m.anchor(), "bshd"))[0], swap_heads());
  });
  // rope(split(x); bshd) -> split(rope(x; bsx))
  Pattern heads = split(x);
  rules.add(exact, "rope_bsx", op(Op::kRope, {heads}).with("layout", bshd), [=](const Match& m) {
    Attrs attrs = with_layout(m, m.anchor(), "bsx").with("num_heads", m[heads].dim(2).literal());
    return reshape(m.rebuilt(m.anchor(), {{0, m[x]}}, attrs)[0], m[heads].dims());
  });
  // swapped(attention(swapped(q), swapped(k), swapped(v))) -> attention(q, k, v; bshd)
  Pattern y = op(Op::kAttention, {swapped(q), swapped(k), swapped(v)}).with("layout", bhsd);
  rules.add(exact, "attention_bshd", swapped(y), [=](const Match& m) {
    return m.rebuilt(m[y], {{0, m[q]}, {1, m[k]}, {2, m[v]}}, with_layout(m, m[y], "bshd"))[0];
  });
  // merged(attention(split(q), split(k), split(v); bshd)) -> attention(q, k, v; bsx)
  Pattern of_q = split(q), of_k = split(k);
  Pattern z = op(Op::kAttention, {of_q, of_k, split(v)}).with("layout", bshd);
  rules.add(exact, "attention_bsx", op(Op::kReshape, {z}), [=](const Match& m) {
    if (m.anchor().rank() != 3 || !(m.anchor().dim(1) == m[z].dim(1))) return Expr();
    Attrs attrs = with_layout(m, m[z], "bsx")
                      .with("num_heads", m[of_q].dim(2).literal())
                      .with("num_kv_heads", m[of_k].dim(2).literal());
    return m.rebuilt(m[z], {{0, m[q]}, {1, m[k]}, {2, m[v]}}, attrs)[0];
  });
}

}  // namespace rlx
