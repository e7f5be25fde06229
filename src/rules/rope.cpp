// SPDX-License-Identifier: Apache-2.0
// Rotary embedding as exporters write it. Either x * C + rotate_half(x) * S, with tables that hold every angle twice;
// or the two parts of x are rotated separately and joined. The parts are the two halves, or even and odd columns, of
// all columns or of the first ones.
#include <cstring>

#include "rules/columns.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

namespace {

enum class Style { kHalf, kInterleaved };  // element i goes with i + R/2, or with its neighbour

bool is_last(Expr x, int64_t axis) {
  return axis == static_cast<int64_t>(x.rank()) - 1;
}

// ---- tables ----

// The width of a table whose rows hold every number twice, as the same bytes: ops above it tell 0 from -0, and two
// large integers that are one number as f64.
template <Style style>
std::optional<double> width_of_twins(const Tensor& tensor) {
  int64_t width = tensor.rank() ? tensor.dims().back() : 1, half = width / 2;
  if (width % 2 || is_block(tensor.dtype()) || is_complex(tensor.dtype())) return std::nullopt;
  int64_t step = style == Style::kHalf ? half : 1;
  auto bytes = static_cast<size_t>(element_bytes(tensor.dtype()));
  auto at = [&](int64_t i) { return tensor.data() + static_cast<size_t>(i) * bytes; };
  for (int64_t i = 0; i < tensor.count(); i++) {
    bool first = style == Style::kHalf ? i % width < half : i % 2 == 0;
    if (first && std::memcmp(at(i), at(i + step), bytes) != 0) return std::nullopt;
  }
  return static_cast<double>(width);
}

// One half of a constant whose rows hold every number twice; absent if they do not.
Expr half_of_constant(const Match& m, Expr table, Style style) {
  bool by_halves = style == Style::kHalf;
  auto found = m.found_in(table, by_halves ? width_of_twins<Style::kHalf> : width_of_twins<Style::kInterleaved>);
  if (!found) return Expr();
  auto width = static_cast<int64_t>(*found), last = static_cast<int64_t>(table.rank()) - 1;
  return by_halves ? slice(table, last, 0, width / 2) : slice(table, last, 0, width, 2);
}

// reshape([..., R/2, 2] -> [..., R]) of a concat(a, a) or a broadcast of a [..., R/2, 1] -> a
Expr half_of_pairs(const Match& m, Expr table) {
  Expr pairs = m.input(table, 0);
  const Node& node = m.node(pairs);
  if (pairs.rank() == 0 || !pairs.dim(-1).is(2)) return Expr();
  bool twice = node.op == Op::kConcat && node.in.size() == 2 && node.in[0] == node.in[1] &&
               is_last(pairs, node.attrs.i64("axis"));
  if (!twice && node.op != Op::kBroadcastTo) return Expr();
  Expr column = m.input(pairs, 0);
  if (column.rank() != pairs.rank() || !column.dim(-1).is(1)) return Expr();
  std::vector<Dim> dims = table.dims();
  auto half = exact_div(dims.back(), 2);
  if (!half || !(element_count(column.dims()) * Dim(2) == element_count(dims))) return Expr();
  dims.back() = *half;
  return reshape(column, dims);
}

// One half of a table that is made of pairs; absent if it is not.
Expr half_here(const Match& m, Expr table, Style style) {
  const Node& node = m.node(table);
  if (node.op == Op::kConstant) return half_of_constant(m, table, style);
  if (node.op == Op::kReshape && style == Style::kInterleaved) return half_of_pairs(m, table);
  if (node.op != Op::kConcat || style != Style::kHalf) return Expr();
  bool twice = node.in.size() == 2 && node.in[0] == node.in[1] && is_last(table, node.attrs.i64("axis"));
  return twice ? m.input(table, 0) : Expr();
}

// For a table made by an op that works row by row: the operand that has the rows. The op on one half of it gives one
// half of the table.
std::optional<size_t> operand_of_rows(const Match& m, Expr table) {
  const Node& node = m.node(table);
  Expr x = m.input(table, 0);
  bool holds = node.op == Op::kCast || (m.graph().info(node).is(kElementwise) && node.in.size() == 1);
  if (node.op == Op::kReshape) holds = x.rank() && x.dim(-1) == table.dim(-1);
  if (node.op == Op::kGather) holds = x.rank() > 1 && node.attrs.i64("axis") == 0;
  if (node.op == Op::kSlice) {
    const Axes& axes = node.attrs.i64s("axes");
    holds = axes.size() == 1 && !is_last(table, axes[0]);
  }
  if (node.op == Op::kMul)
    for (size_t i = 0; i < 2; i++)
      if (m.splat(m.input(table, i)) && m.input(table, 1 - i).dims() == table.dims()) return 1 - i;
  return holds ? std::optional<size_t>(0) : std::nullopt;
}

// The same op as the table's on one half of its operand.
Expr over_half(const Match& m, Expr table, size_t operand, Expr half) {
  if (!m.is(table, Op::kReshape)) return m.rebuilt(table, {{operand, half}})[0];
  std::vector<Dim> dims = table.dims();
  dims.back() = half.dim(-1);
  return reshape(half, dims);
}

// The table with one of each pair of equal numbers in its rows; absent if we cannot prove that they are equal.
Expr half_table(const Match& m, Expr table, Style style) {
  constexpr size_t kMostOps = 32;  // between the pairs and the table
  std::vector<std::pair<Expr, size_t>> above;
  Expr half = half_here(m, table, style);
  while (!half) {
    auto operand = operand_of_rows(m, table);
    if (!operand || above.size() == kMostOps) return Expr();
    above.emplace_back(table, *operand);
    table = m.input(table, *operand);
    half = half_here(m, table, style);
  }
  for (; !above.empty() && half.valid(); above.pop_back())
    half = over_half(m, above.back().first, above.back().second, half);
  return half.valid() ? half : Expr();
}

// The table in the shape that rope takes, [S, R/2] or [B, S, R/2]: without its axis of heads, which must have size 1.
Expr rope_table(Expr half, size_t head_axis) {
  std::vector<Dim> dims = half.dims();
  if (dims.size() == 4) {
    if (!dims[head_axis].is(1)) return Expr();
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(head_axis));
    if (dims[0].is(1)) dims.erase(dims.begin());
    return reshape(half, dims);
  }
  // Without a batch axis the table is [S, R/2] if heads stand before positions, else [S, 1, R/2].
  if (head_axis == 1)
    return half.rank() == 2 ? half : half.rank() == 3 && dims[0].is(1) ? reshape(half, {dims[1], dims[2]}) : Expr();
  return half.rank() == 3 && dims[1].is(1) ? reshape(half, {dims[0], dims[2]}) : Expr();
}

// ---- what is rotated ----

// One of the two parts of x that rope mixes. If there is one head, a reshape for its axis may stand before the slice or
// behind it.
Pattern part_of(const Pattern& x, ColumnHalf half) {
  return through_views(half_of(through_views(x, keeps_rows), half), keeps_rows);
}

// The shape of the value that this is one part of.
std::vector<Dim> dims_of_whole(Expr part) {
  std::vector<Dim> dims = part.dims();
  dims.back() *= 2;
  return dims;
}

// ---- the rules ----

// The tables have a column for each pair of columns of x.
Expr form_rope(const Match& m, Expr x, Expr cos, Expr sin, Style style) {
  if (x.rank() != 4) return m.miss("x has no axes of heads and positions");
  if (!m.has_shape(x)) return m.miss("a table is larger than x");
  for (size_t head_axis : {1, 2}) {
    Expr c = rope_table(cos, head_axis), s = rope_table(sin, head_axis);
    if (!c || !s) continue;
    if (c.dim(-1) * 2 != x.dim(-1) || s.dim(-1) * 2 != x.dim(-1)) return m.miss("the tables do not cover x");
    return m.builder().op(
        Op::kRope, {x, c, s},
        {{"layout", head_axis == 1 ? "bhsd" : "bshd"}, {"style", style == Style::kHalf ? "half" : "interleaved"}});
  }
  return m.miss("the tables have no axis of 1 for the heads");
}

Pattern joined(const Pattern& first, const Pattern& second) {
  return op(Op::kConcat, {first, second}).where("two parts along the last axis", [](const Match& m, Expr y) {
    return m.node(y).in.size() == 2 && is_last(y, m.node(y).attrs.i64("axis"));
  });
}

Pattern column(const Pattern& part) {
  return op(Op::kReshape, {part}).where("a column", [](const Match&, Expr y) { return y.rank() && y.dim(-1).is(1); });
}

// x * C + rotate_half(x) * S -> rope(x), where rotate_half(x) joins -b and a, the two parts of x. The same for the
// joined values a * C - b * S and b * C + a * S.
void add_rules_of_style(RuleSet& rules, Style style) {
  bool by_halves = style == Style::kHalf;
  Pattern base = any(), c = any(), s = any();
  Pattern x = maybe_cast(through_views(base, keeps_rows));  // x and rotate_half(x) may be cast apart, if x is a half
  Pattern a = part_of(base, by_halves ? ColumnHalf::kFirst : ColumnHalf::kEven);
  Pattern b = part_of(base, by_halves ? ColumnHalf::kSecond : ColumnHalf::kOdd);
  // Halves stand one after the other. Neighbours are columns side by side, which a reshape merges.
  auto whole_of = [&](const Pattern& first, const Pattern& second) {
    return by_halves ? joined(first, second) : op(Op::kReshape, {joined(column(first), column(second))});
  };
  Pattern rotate_half =
      by_halves ? joined(neg(b), a) : op(Op::kReshape, {joined(either({column(neg(b)), neg(column(b))}), column(a))});
  rules.add(close, by_halves ? "rope_half" : "rope_interleaved", maybe_cast(rotate_half) * s + x * c,
            [=](const Match& m) {
              if (m[x].dims() != dims_of_whole(m[a])) return m.miss("not the two parts of x");
              Expr cos = half_table(m, m[c], style), sin = half_table(m, m[s], style);
              if (!cos || !sin) return m.miss("the tables are not known to hold every angle twice");
              return form_rope(m, m[x], cos, sin, style);
            });
  rules.add(close, by_halves ? "rope_of_halves" : "rope_of_pairs", whole_of(a * c - b * s, b * c + a * s),
            [=](const Match& m) {
              std::vector<Dim> dims = dims_of_whole(m[a]);
              return form_rope(m, m[base].dims() == dims ? m[base] : reshape(m[base], dims), m[c], m[s], style);
            });
}

// concat(rope(first columns of x), the other columns) -> rope(x), which leaves the other columns alone
void add_partial_rope(RuleSet& rules) {
  Pattern x = any();
  Pattern front = columns(x, "the first columns",
                          [](Expr, Expr, const Dim& start, int64_t step) { return start.is(0) && step == 1; });
  Pattern rest = columns(x, "the last columns", [](Expr whole, Expr part, const Dim& start, int64_t step) {
    return start + part.dim(-1) == whole.dim(-1) && step == 1;
  });
  Pattern rotated = op(Op::kRope, {front}).where("with axes of heads", [](const Match& m, Expr y) {
    return !m.node(y).attrs.is("layout", "bsx");
  });
  rules.add(exact, "rope_partial", joined(rotated, rest), [=](const Match& m) {
    if (!m.has_shape(m[x])) return m.miss("not the front of x and the rest of it");
    return m.rebuilt(m[rotated], {{0, m[x]}})[0];
  });
}

// rope(x, cos, sin, positions) -> rope(x, gather(cos, positions), gather(sin, positions)): a row of a table is shared
// by all heads, so picking rows costs little.
void add_rope_of_positions(RuleSet& rules) {
  Pattern x = any(), cos = any(), sin = any(), positions = any();
  rules.add(exact, "rope_positions", op(Op::kRope, {x, cos, sin, positions}), [=](const Match& m) {
    Expr rows = m[positions];
    return m.builder().op(Op::kRope, {m[x], gather(m[cos], rows, 0), gather(m[sin], rows, 0)}, m.attrs().named());
  });
}

}  // namespace

void add_rope_rules(RuleSet& rules) {
  add_rules_of_style(rules, Style::kHalf);
  add_rules_of_style(rules, Style::kInterleaved);
  add_partial_rope(rules);
  add_rope_of_positions(rules);
}

}  // namespace rlx
