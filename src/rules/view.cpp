// SPDX-License-Identifier: Apache-2.0
// Views in normal form: a chain of reshapes becomes one reshape, a chain of transposes one transpose, and a view that
// changes nothing goes. All rules are exact: no element changes.
#include <algorithm>

#include "ops/views.h"
#include "rules/rules.h"

namespace rlx {

using namespace patterns;

// transpose that moves nothing -> x; transpose(transpose(x)) -> transpose(x); one that moves only literal 1s -> reshape
static Expr normal_transpose(const Match& m) {
  Expr x = m.in(0);
  const Axes& perm = m.attrs().i64s("perm");
  if (std::is_sorted(perm.begin(), perm.end())) return x;
  if (m.is(x, Op::kTranspose)) {
    Axes both;
    for (int64_t axis : perm) both.push_back(m.node(x).attrs.i64s("perm")[static_cast<size_t>(axis)]);
    return transpose(m.input(x, 0), both);
  }
  Axes wide;
  for (int64_t axis : perm)
    if (!x.dim(axis).is(1)) wide.push_back(axis);
  if (std::is_sorted(wide.begin(), wide.end())) return reshape(x, m.anchor().dims());
  return Expr();
}

// An axis that the reshape has merged moves as a whole. So batch*heads, of rank 3, becomes rank 4 again.
static Expr transpose_before_merge(const Match& m, Expr x) {
  const std::vector<Dim>& merged = m.in(0).dims();
  std::vector<AxisRun> runs = reshape_runs(x.dims(), merged);
  bool merges = false;
  for (const AxisRun& run : runs) {
    if (run.to_end - run.to != 1) return Expr();  // this run splits an axis
    merges |= run.from_end - run.from > 1;
  }
  if (!merges || runs.size() != merged.size()) return Expr();
  Axes perm;
  for (int64_t axis : m.attrs().i64s("perm")) {
    const AxisRun& run = runs[static_cast<size_t>(axis)];
    for (size_t k = run.from; k < run.from_end; k++) perm.push_back(static_cast<int64_t>(k));
  }
  return reshape(transpose(x, perm), m.anchor().dims());
}

// A slice that keeps everything -> x
static Expr full_slice(const Match& m) {
  if (!m.has_shape(m.in(0))) return Expr();
  for (int64_t step : m.attrs().i64s("steps"))
    if (step != 1) return Expr();
  return m.in(0);
}

// Ends beyond x become the size of x. So equal slices are one node.
static Expr normal_slice(const Match& m) {
  const Attrs& attrs = m.attrs();
  Expr x = m.in(0);
  std::vector<Dim> starts = attrs.dims("starts"), ends = attrs.dims("ends");
  const Axes &axes = attrs.i64s("axes"), &steps = attrs.i64s("steps");
  for (size_t i = 0; i < starts.size(); i++) {
    if (steps[i] != 1 || m.graph().range(starts[i]).lo < 0) return Expr();
    ends[i] = starts[i] + m.anchor().dims()[static_cast<size_t>(axes[i])];
    if (!m.graph().implies(Guard::kLessEqual, ends[i], x.dims()[static_cast<size_t>(axes[i])])) return Expr();
  }
  if (ends == attrs.dims("ends")) return Expr();
  Expr y = m.builder().op(Op::kSlice, {x}, {{"starts", starts}, {"ends", ends}, {"axes", axes}, {"steps", steps}});
  // A longer form of the same sizes would have ends that are longer still.
  return y.dims() == m.anchor().dims() ? y : Expr();
}

// For a reshape that only adds and drops axes of size 1: for each axis of `to`, the same axis of `from`, or the rank of
// `from` if the axis is new. Empty if the reshape does more.
static std::vector<size_t> kept_axes(std::span<const Dim> from, std::span<const Dim> to) {
  std::vector<size_t> kept;
  size_t next = 0;
  auto skip_ones = [&] {
    while (next < from.size() && from[next].is(1)) next++;
  };
  for (const Dim& dim : to) {
    if (!dim.is(1)) skip_ones();
    if (!dim.is(1) && (next == from.size() || !(dim == from[next]))) return {};
    kept.push_back(dim.is(1) ? from.size() : next++);
  }
  skip_ones();
  return next == from.size() ? kept : std::vector<size_t>();
}

// slice(reshape(x)) -> reshape(slice(x)), so that reshapes gather behind the slices
static Expr slice_before_reshape(const Match& m, Expr x) {
  std::vector<size_t> kept = kept_axes(x.dims(), m.in(0).dims());
  if (kept.empty()) return Expr();
  NamedAttrs attrs = m.attrs().named();
  for (auto& [name, value] : attrs) {
    if (name != "axes") continue;
    for (int64_t& axis : std::get<Axes>(value)) {
      size_t source = kept[static_cast<size_t>(axis)];
      if (source == x.rank()) return Expr();
      axis = static_cast<int64_t>(source);
    }
  }
  return reshape(m.builder().op(Op::kSlice, {x}, attrs), m.anchor().dims());
}

// The result of broadcasting; nullopt unless each pair of dims is equal or has a literal 1.
static std::optional<std::vector<Dim>> certain_broadcast(std::span<const Dim> a, std::span<const Dim> b) {
  auto disagree = [](const Dim&, const Dim&) -> Result<Dim> { return Status(Code::kShape, "sizes that may differ"); };
  auto dims = broadcast(a, b, disagree);
  return dims.ok() ? std::optional(*std::move(dims)) : std::nullopt;
}

// op(broadcast_to(a), b) -> op(a, b), and a broadcast of the result if that has another shape
static Expr broadcast_by_op(const Match& m) {
  size_t count = m.node(m.anchor()).in.size();
  for (size_t i = 0; i < count; i++) {
    if (!m.is(m.in(i), Op::kBroadcastTo)) continue;
    Expr narrow = m.input(m.in(i), 0);
    std::optional<std::vector<Dim>> dims = std::vector<Dim>();
    for (size_t k = 0; k < count && dims; k++) dims = certain_broadcast(*dims, (k == i ? narrow : m.in(k)).dims());
    if (dims) return broadcast_to(m.rebuilt(m.anchor(), {{i, narrow}})[0], m.anchor().dims());
  }
  return Expr();
}

static std::vector<Op> elementwise_ops() {
  std::vector<Op> ops;
  for (const OpInfo& row : op_table().rows())
    if (row.is(kElementwise) && row.primitive()) ops.push_back(row.op());
  return ops;
}

void add_view_rules(RuleSet& rules) {
  Pattern x = any();
  // reshape(reshape(x)) -> reshape(x), or x where that is its shape
  rules.add(exact, "reshape_once", op(Op::kReshape, {through_views(x, any_reshape)}),
            [=](const Match& m) { return m.has_shape(m[x]) ? m[x] : reshape(m[x], m.anchor().dims()); });
  rules.add(exact, "transpose_once", {Op::kTranspose}, normal_transpose);
  // transpose(reshape(x)) -> reshape(transpose(x)) where the reshape only merges axes
  rules.add(exact, "transpose_before_merge", op(Op::kTranspose, {op(Op::kReshape, {x})}),
            [=](const Match& m) { return transpose_before_merge(m, m[x]); });
  rules.add(exact, "full_slice", {Op::kSlice}, full_slice);
  rules.add(exact, "slice_bounds", {Op::kSlice}, normal_slice);
  // slice(reshape(x)) -> reshape(slice(x)) where the reshape only adds and drops 1-dims
  rules.add(exact, "slice_before_reshape", op(Op::kSlice, {op(Op::kReshape, {x})}),
            [=](const Match& m) { return slice_before_reshape(m, m[x]); });
  rules.add(exact, "concat_of_one", {Op::kConcat}, [](const Match& m) { return m.in(1) ? Expr() : m.in(0); });
  // broadcast_to(broadcast_to(x)) -> broadcast_to(x), or x where that is its shape
  rules.add(exact, "broadcast_once", op(Op::kBroadcastTo, {through_views(x, any_broadcast)}),
            [=](const Match& m) { return m.has_shape(m[x]) ? m[x] : broadcast_to(m[x], m.anchor().dims()); });
  rules.add(exact, "broadcast_by_op", elementwise_ops(), broadcast_by_op, {.needs = {Op::kBroadcastTo}});
}

}  // namespace rlx
