// SPDX-License-Identifier: Apache-2.0
// Rotary embedding as files spell it: x * C + turned(x) * S with tables that hold every angle twice,
// or its two parts rotated apart and joined again; over halves or over neighbours; of all elements or the first ones.
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

namespace {

enum class Style { kHalf, kInterleaved };  // element i goes with i + R/2, or with its neighbour

bool is_last(Expr x, int64_t axis) {
  return axis == -1 || axis == static_cast<int64_t>(x.rank()) - 1;
}

// ---- tables ----

Expr half_of(const Match& m, Expr table, Style style);

// The same op over the half of the operand `i` of the node that `table` is: for ops that work row by row.
Expr over_half(const Match& m, Expr table, size_t i, Style style) {
  const Node& node = m.node(table);
  Expr half = half_of(m, m.builder().wrap(node.in[i]), style);
  if (!half) return Expr();
  std::vector<Expr> in;
  for (size_t k = 0; k < node.in.size(); k++) in.push_back(k == i ? half : m.builder().wrap(node.in[k]));
  return m.builder().add(m.graph().info(node), in, node.attrs)[0];
}

// A constant whose rows hold every number twice.
Expr half_of_constant(const Match& m, Expr table, Style style) {
  const Tensor& tensor = *m.graph().constant(table.value());
  int64_t width = table.rank() ? tensor.dims().back() : 1, half = width / 2;
  if (width % 2 || is_block(tensor.dtype()) || is_complex(tensor.dtype())) return Expr();
  int64_t step = style == Style::kHalf ? half : 1;
  for (int64_t i = 0; i < tensor.count(); i++) {
    bool first = style == Style::kHalf ? i % width < half : i % 2 == 0;
    if (first && element_as_f64(tensor, i) != element_as_f64(tensor, i + step)) return Expr();
  }
  int64_t last = static_cast<int64_t>(table.rank()) - 1;
  return style == Style::kHalf ? slice(table, last, 0, half) : slice(table, last, 0, width, 2);
}

// reshape([..., R/2, 2] -> [..., R]) of a concat(a, a) or a broadcast of a [..., R/2, 1] -> a
Expr half_of_pairs(const Match& m, Expr table) {
  Expr pairs = m.builder().wrap(m.node(table).in[0]);
  const Node& node = m.node(pairs);
  if (pairs.rank() == 0 || !pairs.dim(-1).is(2)) return Expr();
  bool twice = node.op == Op::kConcat && node.in.size() == 2 && node.in[0] == node.in[1] &&
               is_last(pairs, node.attrs.i64("axis"));
  if (!twice && node.op != Op::kBroadcastTo) return Expr();
  Expr column = m.builder().wrap(node.in[0]);
  if (column.rank() != pairs.rank() || !column.dim(-1).is(1)) return Expr();
  std::vector<Dim> dims = table.dims();
  auto half = exact_div(dims.back(), 2);
  if (!half || !(element_count(column.dims()) * Dim(2) == element_count(dims))) return Expr();
  dims.back() = *half;
  return reshape(column, dims);
}

// One of each pair of equal numbers in the table's rows, where it can be seen that they are equal; absent if not.
Expr half_of(const Match& m, Expr table, Style style) {
  const Node& node = m.node(table);
  Expr x = node.in.empty() ? Expr() : m.builder().wrap(node.in[0]);
  if (node.op == Op::kConstant) return half_of_constant(m, table, style);
  if (node.op == Op::kConcat) {
    bool twice = node.in.size() == 2 && node.in[0] == node.in[1] && is_last(table, node.attrs.i64("axis"));
    return twice && style == Style::kHalf ? x : Expr();
  }
  if (node.op == Op::kCast || (m.graph().info(node).is(kElementwise) && node.in.size() == 1))
    return over_half(m, table, 0, style);
  if (node.op == Op::kReshape) {
    if (style == Style::kInterleaved)
      if (Expr half = half_of_pairs(m, table)) return half;
    Expr half = x.rank() && x.dim(-1) == table.dim(-1) ? half_of(m, x, style) : Expr();
    if (!half) return Expr();
    std::vector<Dim> dims = table.dims();
    dims.back() = half.dim(-1);
    return reshape(half, dims);
  }
  if (node.op == Op::kGather && x.rank() > 1 && node.attrs.i64("axis") == 0) return over_half(m, table, 0, style);
  if (node.op == Op::kSlice && node.attrs.has("axes") && node.attrs.i64s("axes").size() == 1)
    return is_last(table, node.attrs.i64s("axes")[0]) ? Expr() : over_half(m, table, 0, style);
  if (node.op == Op::kMul)
    for (size_t i = 0; i < 2; i++)
      if (m.splat(m.builder().wrap(node.in[i])) && m.graph().type(node.in[1 - i]).dims == table.dims())
        return over_half(m, table, 1 - i, style);
  return Expr();
}

// The table as rope wants it, [S, R/2] or [B, S, R/2], and where its axis of heads stood.
Expr rope_table(Expr half, size_t head_axis) {
  std::vector<Dim> dims = half.dims();
  if (dims.size() == 4) {
    if (!dims[head_axis].is(1)) return Expr();
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(head_axis));
    if (dims[0].is(1)) dims.erase(dims.begin());
    return reshape(half, dims);
  }
  // Without a batch axis: [S, R/2] when heads stand in front, [S, 1, R/2] when they follow.
  if (head_axis == 1)
    return half.rank() == 2 ? half : half.rank() == 3 && dims[0].is(1) ? reshape(half, {dims[1], dims[2]}) : Expr();
  return half.rank() == 3 && dims[1].is(1) ? reshape(half, {dims[0], dims[2]}) : Expr();
}

// ---- what is rotated ----

struct Rotated {
  Expr x;
  Style style;
};

// The slice that a value is, or that it is but for axes in front of the last: where there is one head, its axis has
// become such a reshape.
const Node* slice_of(const Match& m, Expr part) {
  const Node* node = &m.node(part);
  if (node->op == Op::kReshape) node = &m.graph().node(node->in[0]);
  return node->op == Op::kSlice && part.rank() && node->out[0].dims.back() == part.dim(-1) ? node : nullptr;
}

// The value whose first and second halves, or even and odd elements, `a` and `b` are.
std::optional<Rotated> parts_of(const Match& m, Expr a, Expr b) {
  const Node *first = slice_of(m, a), *second = slice_of(m, b);
  if (!first || !second || first->in[0] != second->in[0] || !(a.dims() == b.dims())) return std::nullopt;
  Expr x = m.builder().wrap(first->in[0]);
  for (const Node* part : {first, second})
    if (part->attrs.dims("starts").size() != 1 || !part->attrs.has("axes") || !part->attrs.has("steps") ||
        !is_last(x, part->attrs.i64s("axes")[0]))
      return std::nullopt;
  Dim from_a = first->attrs.dims("starts")[0], from_b = second->attrs.dims("starts")[0];
  int64_t step = first->attrs.i64s("steps")[0];
  if (step != second->attrs.i64s("steps")[0] || !from_a.is(0) || !(x.dim(-1) == a.dim(-1) * Dim(2)))
    return std::nullopt;
  std::vector<Dim> dims = a.dims();
  dims.back() = x.dim(-1);
  if (!(x.dims() == dims)) x = reshape(x, dims);
  if (step == 1 && from_b == a.dim(-1)) return Rotated{x, Style::kHalf};
  if (step == 2 && from_b.is(1)) return Rotated{x, Style::kInterleaved};
  return std::nullopt;
}

// Both tables of width R/2.
Expr form_rope(const Match& m, const Rotated& rotated, Expr cos, Expr sin) {
  if (rotated.x.rank() != 4) return m.miss("x has no axes of heads and positions");
  if (!(rotated.x.dims() == m.anchor().dims())) return m.miss("a table enlarges x");
  for (size_t head_axis : {1, 2}) {
    Expr c = rope_table(cos, head_axis), s = rope_table(sin, head_axis);
    if (!c || !s) continue;
    return m.builder().op(Op::kRope, {rotated.x, c, s},
                          {{"layout", head_axis == 1 ? "bhsd" : "bshd"},
                           {"style", rotated.style == Style::kHalf ? "half" : "interleaved"}});
  }
  return m.miss("the tables have no axis of 1 for the heads");
}

// x * C + turned(x) * S, turned made of -b and a
Expr rope_of_turned(const Match& m, const Pattern& x, const Pattern& c, const Pattern& s, const Pattern& a,
                    const Pattern& b, Style style) {
  auto rotated = parts_of(m, m[a], m[b]);
  if (!rotated || rotated->style != style) return m.miss("not the two parts of x");
  // Of a half x what is turned may be widened after it was, and x apart from it.
  bool apart = m.is(m[x], Op::kCast) && is_half(rotated->x.dtype()) && m.input(m[x], 0).value() == rotated->x.value();
  if (apart) rotated->x = m[x];
  if (rotated->x.value() != m[x].value()) return m.miss("not the two parts of x");
  Expr cos = half_of(m, m[c], style), sin = half_of(m, m[s], style);
  if (!cos || !sin) return m.miss("the tables are not known to hold every angle twice");
  return form_rope(m, *rotated, cos, sin);
}

// a * C - b * S and b * C + a * S, joined
Expr rope_of_parts(const Match& m, const Pattern& c, const Pattern& s, const Pattern& a, const Pattern& b,
                   Style style) {
  auto rotated = parts_of(m, m[a], m[b]);
  if (!rotated || rotated->style != style) return m.miss("not the two parts of a value");
  return form_rope(m, *rotated, m[c], m[s]);
}

// concat(rope(first R of x), the rest of x) -> rope(x), which leaves the rest alone
Expr partial_rope(const Match& m) {
  if (m.node(m.anchor()).in.size() != 2 || !is_last(m.anchor(), m.attrs().i64("axis"))) return Expr();
  Expr turned = m.in(0);
  const Node &rope = m.node(turned), &rest = m.node(m.in(1));
  if (rope.op != Op::kRope || rest.op != Op::kSlice || !m.is_inner(turned)) return Expr();
  if (rope.attrs.is("layout", "bsx")) return Expr();
  const Node& front = m.graph().node(rope.in[0]);
  if (front.op != Op::kSlice || front.in[0] != rest.in[0]) return Expr();
  Expr x = m.builder().wrap(front.in[0]);
  Dim at = 0;
  for (const Node* part : {&front, &rest}) {
    if (part->attrs.dims("starts").size() != 1 || !part->attrs.has("axes") || !part->attrs.has("steps")) return Expr();
    if (!is_last(x, part->attrs.i64s("axes")[0]) || part->attrs.i64s("steps")[0] != 1) return Expr();
    if (!(part->attrs.dims("starts")[0] == at)) return m.miss("not the front of x and the rest of it");
    at += part->out[0].dims.back();
  }
  if (!(at == x.dim(-1))) return m.miss("not the front of x and the rest of it");
  std::vector<Expr> in{x};
  for (size_t i = 1; i < rope.in.size(); i++) in.push_back(m.builder().wrap(rope.in[i]));
  return m.builder().add(m.graph().info(rope), in, rope.attrs)[0];
}

}  // namespace

void add_rope_rules(RuleSet& rules) {
  Pattern x = any(), c = any(), s = any(), a = any(), b = any();
  // Two parts along the last axis; or as its two columns, which a reshape then makes neighbours.
  auto joined = [](const Pattern& first, const Pattern& second) {
    return op(Op::kConcat, {first, second}).where("two parts along the last axis", [](const Match& m, Expr y) {
      return m.node(y).in.size() == 2 && is_last(y, m.node(y).attrs.i64("axis"));
    });
  };
  auto column = [](const Pattern& part) {
    return op(Op::kReshape, {part}).where("a column", [](const Match&, Expr y) { return y.rank() && y.dim(-1).is(1); });
  };
  auto pairs = [&](const Pattern& even, const Pattern& odd) { return op(Op::kReshape, {joined(even, odd)}); };
  Pattern back = either({column(neg(b)), neg(column(b))});
  Pattern left = a * c - b * s, right = b * c + a * s;
  rules.add(close, "rope_half", maybe_cast(joined(neg(b), a)) * s + x * c,
            [=](const Match& m) { return rope_of_turned(m, x, c, s, a, b, Style::kHalf); });
  rules.add(close, "rope_interleaved", maybe_cast(pairs(back, column(a))) * s + x * c,
            [=](const Match& m) { return rope_of_turned(m, x, c, s, a, b, Style::kInterleaved); });
  rules.add(close, "rope_of_halves", joined(left, right),
            [=](const Match& m) { return rope_of_parts(m, c, s, a, b, Style::kHalf); });
  rules.add(close, "rope_of_pairs", pairs(column(left), column(right)),
            [=](const Match& m) { return rope_of_parts(m, c, s, a, b, Style::kInterleaved); });
  rules.add(exact, "rope_partial", std::vector{Op::kConcat}, partial_rope);
}

}  // namespace rlx
