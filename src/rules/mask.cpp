// SPDX-License-Identifier: Apache-2.0
// Positions (SPELLINGS.md 2 and 3): comparisons that the sizes decide (exporters write "no mask" as iota >= 0), and
// gathers whose indices count up along axes, which are slices. Out of range they would fail the run; a guard does. It
// also does at a size of 0 that leaves nothing to index.
#include <algorithm>

#include "rewrite/affine.h"
#include "rewrite/facts.h"
#include "rules/rules.h"

namespace rlx {

// ---- comparisons ----

// a <= b or a < b over integers where the sign of b - a is known -> true or false
static Expr decided_comparison(const Match& m) {
  Expr a = m.in(0), b = m.in(1);
  if (!is_integer(a.dtype())) return Expr();
  bool strict = m.node(m.anchor()).op == Op::kLt, always = false, never = false;
  auto of_a = affine_form(m.graph(), a.value()), of_b = affine_form(m.graph(), b.value());
  if (of_a && of_b) {
    Interval difference = bounds_of(m.graph(), *of_b - *of_a, m.anchor().dims());
    always = difference.lo >= (strict ? 1 : 0), never = difference.hi < (strict ? 1 : 0);
  } else if (auto x = integer_range(m.graph(), a.value()), y = integer_range(m.graph(), b.value()); x && y) {
    always = strict ? x->hi < y->lo : x->hi <= y->lo, never = strict ? x->lo >= y->hi : x->lo > y->hi;
  }
  if (!always && !never) return Expr();
  return broadcast_to(m.builder().scalar(DType::kBool, always ? 1 : 0), m.anchor().dims());
}

// ---- gathers ----

// What is taken of one axis: as many positions from `start` on as axis `to` of the indices has, or one.
struct Pick {
  static constexpr size_t kOne = SIZE_MAX;
  Dim start;
  size_t to = kOne;
};

// x[..., indices, ...] where the indices pick positions of the axes of x from `first` on, one axis each: the anchor.
static Expr picked(const Match& m, Expr x, size_t first, const std::vector<Pick>& picks, std::span<const Dim> index) {
  if (std::any_of(index.begin(), index.end(), [](const Dim& dim) { return dim.is(0); })) return Expr();
  std::vector<Dim> taken(index.size(), Dim(1));
  std::vector<Guard> guards;
  for (size_t i = 0; i < picks.size(); i++) {
    const auto& [start, to] = picks[i];
    if (to != Pick::kOne && !taken[to].is(1)) return m.miss("two axes are read along one");
    Dim end = to == Pick::kOne ? start + 1 : start + index[to];
    if (to != Pick::kOne) taken[to] = index[to];
    if (m.graph().range(start).lo < 0 || m.graph().range(x.dims()[first + i] - end).hi < 0)
      return m.miss("a position may be out of range");
    guards.push_back({Guard::kLessEqual, end, x.dims()[first + i], m.graph().describe(m.anchor().value().node)});
  }
  for (const Guard& guard : guards)
    if (!m.builder().graph().add_guard(guard).ok()) return m.miss("a position is out of range");
  std::vector<size_t> order;
  for (size_t i = 0; i < picks.size(); i++) {
    x = slice(x, static_cast<int64_t>(first + i), picks[i].start, guards[i].a);
    order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return picks[a].to < picks[b].to; });
  Axes perm = trailing_axes(0, x.rank());
  for (size_t i = 0; i < order.size(); i++) perm[first + i] = static_cast<int64_t>(first + order[i]);
  std::vector<Dim> dims = x.dims();
  auto at = dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(first),
                       dims.begin() + static_cast<std::ptrdiff_t>(first + picks.size()));
  dims.insert(at, taken.begin(), taken.end());
  return broadcast_to(reshape(transpose(x, perm), dims), m.anchor().dims());
}

// Indices that count through a row-major block, as b * S + s does: one axis of x for each axis that they move along.
struct Digits {
  std::vector<Dim> sizes;  // that the gathered axis splits into
  std::vector<Pick> picks;
};

static std::optional<Digits> digits_of(const Affine& form, const Dim& size) {
  if (form.is_uniform()) {
    bool from_end = form.offset.is_literal() && form.offset.literal() < 0;
    return Digits{{size}, {{from_end ? size + form.offset : form.offset}}};
  }
  std::vector<size_t> moving;
  for (size_t axis = 0; axis < form.steps.size(); axis++)
    if (!form.steps[axis].is(0)) moving.push_back(axis);
  Digits digits;
  Dim whole = size;
  while (!moving.empty()) {
    // The slowest of those left: the one whose step all the others divide.
    auto slowest = std::find_if(moving.begin(), moving.end(), [&](size_t axis) {
      return std::all_of(moving.begin(), moving.end(),
                         [&](size_t other) { return exact_div(form.steps[axis], form.steps[other]).has_value(); });
    });
    if (slowest == moving.end()) return std::nullopt;
    auto part = exact_div(whole, form.steps[*slowest]);
    if (!part) return std::nullopt;
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
  if (!m.rewriter().options().checks_indices || x.dtype() != m.anchor().dtype()) return Expr();
  auto form = affine_form(m.graph(), index.value());
  if (!form) return Expr();
  auto axis = static_cast<size_t>(m.attrs().i64("axis"));
  auto digits = digits_of(*form, x.dims()[axis]);
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

// gather_nd(x, tuples of positions) -> the same, each component along an axis of its own
static Expr gather_nd_of_positions(const Match& m) {
  Expr x = m.in(0), index = m.in(1);
  if (!m.rewriter().options().checks_indices || m.attrs().i64("batch_dims") != 0 || index.rank() == 0) return Expr();
  std::vector<Expr> parts = components(m, index);
  if (parts.empty()) return Expr();
  std::vector<Pick> picks;
  for (size_t i = 0; i < parts.size(); i++) {
    auto form = affine_form(m.graph(), parts[i].value());
    if (!form) return Expr();
    auto digits = digits_of(*form, x.dims()[i]);
    if (!digits || digits->picks.size() != 1) return m.miss("a component moves along more than one axis");
    picks.push_back(digits->picks[0]);
  }
  return picked(m, x, 0, picks, std::span(index.dims()).first(index.rank() - 1));
}

void add_mask_rules(RuleSet& rules) {
  rules.add(exact, "decided_comparison", std::vector{Op::kLt, Op::kLe}, decided_comparison);
  rules.add(exact, "gather_of_positions", std::vector{Op::kGather}, gather_of_positions);
  rules.add(exact, "gather_nd_of_positions", std::vector{Op::kGatherNd}, gather_nd_of_positions);
}

}  // namespace rlx
