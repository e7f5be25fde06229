// SPDX-License-Identifier: Apache-2.0
// Rotary embedding as files spell it (SPELLINGS.md 4): x * C + rotated(x) * S, with tables whose halves are equal.
#include "ops/rules.h"
#include "rewrite/facts.h"

namespace rlx {

using namespace patterns;

// The first half of a table's last axis, where it can be seen that the second half equals it; absent if not.
static Expr half_of(const Match& m, Expr table) {
  const Node& node = m.node(table);
  Expr x = node.in.empty() ? Expr() : m.builder().wrap(node.in[0]);
  if (node.op == Op::kConcat) {
    int64_t axis = node.attrs.i64("axis"), last = static_cast<int64_t>(table.rank()) - 1;
    bool twice = node.in.size() == 2 && node.in[0] == node.in[1];
    return twice && (axis == -1 || axis == last) ? x : Expr();
  }
  if (node.op == Op::kCast || (m.graph().info(node).is(kElementwise) && node.in.size() == 1)) {
    Expr half = half_of(m, x);
    return half ? m.builder().add(m.graph().info(node), std::vector{half}, node.attrs)[0] : Expr();
  }
  if (node.op == Op::kReshape) {
    if (!x.rank() || !(x.dim(-1) == table.dim(-1))) return Expr();
    Expr half = half_of(m, x);
    if (!half) return Expr();
    std::vector<Dim> dims = table.dims();
    dims.back() = half.dim(-1);
    return reshape(half, dims);
  }
  if (node.op == Op::kMul) {
    for (size_t i = 0; i < 2; i++) {
      auto factor = splat_value(m.graph(), node.in[i]);
      Expr other = m.builder().wrap(node.in[1 - i]);
      if (!factor || !(other.dims() == table.dims())) continue;
      Expr half = half_of(m, other);
      return half ? half * half.builder().scalar(half.dtype(), *factor) : Expr();
    }
  }
  return Expr();
}

// The table as rope wants it, [S, R/2] or [B, S, R/2], and where its axis of heads stood.
static Expr rope_table(Expr half, size_t head_axis) {
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

// The bounds of a slice over the last axis alone with step 1; nullopt for any other slice.
static std::optional<std::pair<Dim, Dim>> last_axis_slice(const Match& m, Expr x) {
  const Node& node = m.node(x);
  if (node.op != Op::kSlice || node.attrs.dims("starts").size() != 1) return std::nullopt;
  const Attrs& attrs = node.attrs;
  int64_t axis = attrs.has("axes") ? attrs.i64s("axes")[0] : 0, step = attrs.has("steps") ? attrs.i64s("steps")[0] : 1;
  int64_t last = static_cast<int64_t>(x.rank()) - 1;
  if ((axis != -1 && axis != last) || step != 1) return std::nullopt;
  return std::pair(attrs.dims("starts")[0], attrs.dims("ends")[0]);
}

static Expr form_rope(const Match& m, const Pattern& x, const Pattern& c, const Pattern& s, const Pattern& lo,
                      const Pattern& hi) {
  Expr value = m[x];
  if (value.rank() != 4) return m.miss("x has no axes of heads and positions");
  auto low = last_axis_slice(m, m[lo]), high = last_axis_slice(m, m[hi]);
  if (!low || !high || m.node(m[lo]).in[0] != value.value() || m.node(m[hi]).in[0] != value.value())
    return m.miss("not the two halves of x");
  Dim half = m[lo].dim(-1);
  if (!low->first.is(0) || !(high->first == half) || !(value.dim(-1) == half * 2))
    return m.miss("the halves do not make x");
  Expr cos = half_of(m, m[c]), sin = half_of(m, m[s]);
  if (!cos || !sin) return m.miss("the halves of the tables are not known to be equal");
  for (size_t head_axis : {1, 2}) {
    Expr a = rope_table(cos, head_axis), b = rope_table(sin, head_axis);
    if (!a || !b) continue;
    const char* layout = head_axis == 1 ? "bhsd" : "bshd";
    return m.builder().op(Op::kRope, {value, a, b}, {{"layout", layout}, {"style", "half"}});
  }
  return m.miss("the tables have no axis of 1 for the heads");
}

void add_rope_rules(RuleSet& rules) {
  // x * C + concat(-hi(x), lo(x)) * S -> rope(x, C/2, S/2; half)
  Pattern x = any(), c = any(), s = any(), hi = any(), lo = any();
  Pattern turned = op(Op::kConcat, {neg(hi), lo});
  rules.add(close, "rope_half", turned * s + x * c, [=](const Match& m) { return form_rope(m, x, c, s, lo, hi); });
}

}  // namespace rlx
