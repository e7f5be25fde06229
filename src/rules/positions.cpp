// SPDX-License-Identifier: Apache-2.0
// Rules about integers that depend on sizes and positions only. The result of their comparison may be known: exporters
// write "no mask" as iota >= 0. A gather whose indices count up along axes is a slice. A position out of range would
// fail the run, so a guard may fail it instead. If a size is 0 and nothing is indexed, the guard holds.
#include <algorithm>

#include "rules/rules.h"

namespace rlx {

// ---- comparisons ----

// a <= b or a < b over integers where the sign of b - a is known -> true or false
static Expr decided_comparison(const Match& m) {
  Expr a = m.in(0), b = m.in(1);
  if (!is_integer(a.dtype())) return Expr();
  bool strict = m.node(m.anchor()).op == Op::kLt, always = false, never = false;
  const Affine *of_a = m.affine(a), *of_b = m.affine(b);
  if (of_a && of_b) {
    Interval difference = bounds_of(m.graph(), *of_b - *of_a, m.anchor().dims());
    always = difference.lo >= (strict ? 1 : 0), never = difference.hi < (strict ? 1 : 0);
  } else if (auto x = m.range(a), y = m.range(b); x && y) {
    always = strict ? x->hi < y->lo : x->hi <= y->lo, never = strict ? x->lo >= y->hi : x->lo > y->hi;
  }
  if (!always && !never) return Expr();
  return broadcast_to(m.builder().scalar(DType::kBool, always ? 1 : 0), m.anchor().dims());
}

// ---- gathers ----

// The positions that are read along one axis: from `start` on, as many as axis `to` of the indices has, or one.
struct Pick {
  static constexpr size_t kOne = SIZE_MAX;
  Dim start;
  size_t to = kOne;
};

// 1 if there are indices, else 0: the product of min(1, size) over the sizes of theirs that may be 0. Indices are
// checked even if they pick no elements (semantics.md X3), so the sizes of x do not count. Nor does an axis of
// positions that start at 0: these are out of range only if there are some. nullopt if such a size is not a plain
// symbol.
static std::optional<Dim> presence_of(const Match& m, const Pick& pick, std::span<const Dim> index) {
  Dim presence = 1;
  for (size_t i = 0; i < index.size(); i++) {
    if ((i == pick.to && pick.start.is(0)) || m.graph().range(index[i]).lo >= 1) continue;
    if (!index[i].symbol_name()) return std::nullopt;
    if (!exact_div(presence, min(1, index[i]))) presence *= min(1, index[i]);
  }
  return presence;
}

struct AxisBounds {
  Dim start, end;
};

// What is read of an axis of x; nullopt where a position may be out of range. Where nothing is read, the slice is
// empty.
static std::optional<AxisBounds> slice_bounds(const Match& m, const Pick& pick, size_t axis, Expr x,
                                              std::span<const Dim> index) {
  auto miss = [&](std::string_view why) { return m.miss(why), std::nullopt; };
  const Dim &size = x.dims()[axis], &start = pick.start;
  Dim end = start + (pick.to == Pick::kOne ? Dim(1) : index[pick.to]);
  if (m.graph().range(start).lo < 0 || m.graph().range(size - end).hi < 0)
    return miss("a position may be out of range");
  if (m.graph().implies(Guard::kLessEqual, end, size)) return AxisBounds{start, end};
  auto presence = presence_of(m, pick, index);
  if (!presence) return miss("there may be no indices, where any position is legal");
  if (!m.require(*presence * end, Guard::kLessEqual, size)) return miss("a position is out of range");
  return AxisBounds{*presence * start, *presence * end};
}

// The anchor as slices of x: its indices pick positions of the axes of x from `first` on, one pick for each axis.
static Expr picked(const Match& m, Expr x, size_t first, const std::vector<Pick>& picks, std::span<const Dim> index) {
  if (!x.valid()) return x;
  if (std::any_of(index.begin(), index.end(), [](const Dim& dim) { return dim.is(0); })) return Expr();
  std::vector<Dim> taken(index.size(), Dim(1));
  std::vector<AxisBounds> bounds;
  for (size_t i = 0; i < picks.size(); i++) {
    size_t to = picks[i].to;
    if (to != Pick::kOne && !taken[to].is(1)) return m.miss("two axes are read along one");
    if (to != Pick::kOne) taken[to] = index[to];
    auto found = slice_bounds(m, picks[i], first + i, x, index);
    if (!found) return Expr();
    bounds.push_back(*found);
  }
  std::vector<size_t> order;
  for (size_t i = 0; i < picks.size(); i++) {
    x = slice(x, static_cast<int64_t>(first + i), bounds[i].start, bounds[i].end);
    order.push_back(i);
  }
  if (!x.valid()) return x;  // a size that may be negative
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return picks[a].to < picks[b].to; });
  Axes perm = trailing_axes(0, x.rank());
  for (size_t i = 0; i < order.size(); i++) perm[first + i] = static_cast<int64_t>(first + order[i]);
  std::vector<Dim> dims = x.dims();
  auto at = dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(first),
                       dims.begin() + static_cast<std::ptrdiff_t>(first + picks.size()));
  dims.insert(at, taken.begin(), taken.end());
  if (!(element_count(dims) == element_count(x.dims()))) return m.miss("where nothing is read the sizes differ");
  return broadcast_to(reshape(transpose(x, perm), dims), m.anchor().dims());
}

// Indices that count through a row-major block, as b * S + s does. The gathered axis splits into one axis for each axis
// that the indices move along.
struct Digits {
  std::vector<Dim> sizes;  // that the gathered axis splits into
  std::vector<Pick> picks;
};

static std::optional<Digits> digits_of(const Graph& graph, const Affine& form, std::span<const Dim> index,
                                       const Dim& size) {
  if (form.is_uniform()) {
    bool from_end = form.offset.is_literal() && form.offset.literal() < 0;
    return Digits{{size}, {{from_end ? size + form.offset : form.offset}}};
  }
  std::vector<size_t> moving;
  for (size_t axis = 0; axis < form.steps.size(); axis++)
    if (!form.steps[axis].is(0)) moving.push_back(axis);
  Digits digits;
  bool reaches_end = true;  // whether all slower digits reach their end
  Dim whole = size;
  for (size_t axis : moving)
    if (graph.range(form.steps[axis]).lo < 0) return std::nullopt;
  while (!moving.empty()) {
    // The slowest digit left: all the others divide its step.
    auto slowest = std::find_if(moving.begin(), moving.end(), [&](size_t axis) {
      return std::all_of(moving.begin(), moving.end(),
                         [&](size_t other) { return exact_div(form.steps[axis], form.steps[other]).has_value(); });
    });
    if (slowest == moving.end()) return std::nullopt;
    auto part = exact_div(whole, form.steps[*slowest]);
    if (!part) return std::nullopt;
    // A faster digit must not run into the next value of the slower one. After the last value of the slower one, that
    // would be out of range.
    if (!reaches_end && !graph.implies(Guard::kLessEqual, index[*slowest], *part)) return std::nullopt;
    reaches_end &= index[*slowest] == *part;
    digits.sizes.push_back(*part);
    digits.picks.push_back({0, *slowest});
    whole = form.steps[*slowest];
    moving.erase(slowest);
  }
  if (!whole.is(1) || (digits.picks.size() > 1 && !form.offset.is(0))) return std::nullopt;
  digits.picks[0].start = form.offset;
  return digits;
}

// gather(x, offset + positions) -> slice, reshape, broadcast
static Expr gather_of_positions(const Match& m) {
  Expr x = m.in(0), index = m.in(1);
  if (!m.checks_indices() || x.dtype() != m.anchor().dtype()) return Expr();
  const Affine* form = m.affine(index);
  if (!form) return Expr();
  auto axis = static_cast<size_t>(m.attrs().i64("axis"));
  auto digits = digits_of(m.graph(), *form, index.dims(), x.dims()[axis]);
  if (!digits) return m.miss("the indices count through no block of the axis");
  std::vector<Dim> split = x.dims();
  auto at = split.erase(split.begin() + static_cast<std::ptrdiff_t>(axis));
  split.insert(at, digits->sizes.begin(), digits->sizes.end());
  return picked(m, reshape(x, split), axis, digits->picks, index.dims());
}

// The components of index tuples: the parts of a concat along their last axis, each of width 1.
static std::vector<Expr> components(const Match& m, Expr index) {
  if (index.dim(-1).is(1)) return {index};
  const Node& node = m.node(index);
  int64_t last = static_cast<int64_t>(index.rank()) - 1;
  if (node.op != Op::kConcat || node.attrs.i64("axis") != last) return {};
  std::vector<Expr> parts;
  for (Value value : node.in) {
    parts.push_back(m.builder().wrap(value));
    if (!parts.back().dim(-1).is(1)) return {};
  }
  return parts;
}

// gather_nd(x, tuples of positions) -> the same for several axes, one component per axis
static Expr gather_nd_of_positions(const Match& m) {
  Expr x = m.in(0), index = m.in(1);
  if (!m.checks_indices() || m.attrs().i64("batch_dims") != 0 || index.rank() == 0) return Expr();
  std::vector<Expr> parts = components(m, index);
  if (parts.empty()) return Expr();
  std::vector<Pick> picks;
  for (size_t i = 0; i < parts.size(); i++) {
    const Affine* form = m.affine(parts[i]);
    if (!form) return Expr();
    auto digits = digits_of(m.graph(), *form, parts[i].dims(), x.dims()[i]);
    if (!digits || digits->picks.size() != 1) return m.miss("a component moves along more than one axis");
    picks.push_back(digits->picks[0]);
  }
  return picked(m, x, 0, picks, std::span(index.dims()).first(index.rank() - 1));
}

void add_position_rules(RuleSet& rules) {
  rules.add(exact, "decided_comparison", {Op::kLt, Op::kLe}, decided_comparison);
  rules.add(exact, "gather_of_positions", {Op::kGather}, gather_of_positions);
  rules.add(exact, "gather_nd_of_positions", {Op::kGatherNd}, gather_nd_of_positions);
}

}  // namespace rlx
