// SPDX-License-Identifier: Apache-2.0
#include "planted.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "edit.h"
#include "ops/expr.h"

namespace rlx::test {

namespace {

// The expression that stands for this node, which has one output; absent: it stays.
using Replacement = std::function<Expr(Builder& builder, uint32_t index, const Values& in)>;

std::optional<Graph> replaced(const Graph& graph, const Replacement& replacement) {
  bool any = false;
  auto made = edited(graph, [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    Builder builder(to);
    Expr value = replacement(builder, index, in);
    if (!value.valid() || !builder.status().ok()) return copy_node(graph, index, in, to);
    any = true;
    return Values{value.value()};
  });
  return any && made.ok() ? std::optional(std::move(*made)) : std::nullopt;
}

const Node* node_of(const Graph& graph, Value value, Op op) {
  return present(value) && graph.node(value).op == op ? &graph.node(value) : nullptr;
}

// The one number of a constant.
std::optional<double> number_of(const Graph& graph, Value value) {
  const Tensor* tensor = present(value) ? graph.constant(value) : nullptr;
  if (!tensor || tensor->count() != 1 || is_complex(tensor->dtype())) return std::nullopt;
  return element_as_f64(*tensor, 0);
}

// ---- exact ----

struct Range {
  __int128 lo, hi;
};

// The range of an integer, as if integers had no end and none could wrap.
std::optional<Range> unbounded_range(const Graph& graph, Value value, int depth) {
  const Node& node = graph.node(value);
  if (depth == 0 || !dtypes::I.has(graph.type(value).dtype)) return std::nullopt;
  if (const Tensor* tensor = graph.constant(value)) {
    if (tensor->count() != 1) return std::nullopt;
    return Range{element_as_i64(*tensor, 0), element_as_i64(*tensor, 0)};
  }
  if (node.op == Op::kIota) {
    const Dim& dim = node.out[0].dims[static_cast<size_t>(node.attrs.i64("axis"))];
    if (!dim.is_literal() || dim.literal() == 0) return std::nullopt;
    return Range{0, dim.literal() - 1};
  }
  if (node.op == Op::kCast) return unbounded_range(graph, node.in[0], depth - 1);
  if (node.op != Op::kAdd && node.op != Op::kMul && node.op != Op::kSub) return std::nullopt;
  auto a = unbounded_range(graph, node.in[0], depth - 1), b = unbounded_range(graph, node.in[1], depth - 1);
  if (!a || !b) return std::nullopt;
  if (node.op == Op::kAdd) return Range{a->lo + b->lo, a->hi + b->hi};
  if (node.op == Op::kSub) return Range{a->lo - b->hi, a->hi - b->lo};
  auto ends = std::minmax({a->lo * b->lo, a->lo * b->hi, a->hi * b->lo, a->hi * b->hi});
  return Range{ends.first, ends.second};
}

std::optional<Graph> compare_without_wrapping(const Graph& graph) {
  return replaced(graph, [&](Builder& builder, uint32_t index, const Values&) -> Expr {
    const Node& node = graph.node(index);
    if (node.op != Op::kLt && node.op != Op::kLe) return {};
    auto a = unbounded_range(graph, node.in[0], 3), b = unbounded_range(graph, node.in[1], 3);
    if (!a || !b || (a->hi >= b->lo && a->lo <= b->hi)) return {};
    return broadcast_to(builder.scalar(DType::kBool, a->hi < b->lo), node.out[0].dims);
  });
}

// x / c -> x * (1 / c) where f64 holds 1 / c exactly, but the dtype may not: c is a power of two.
std::optional<Graph> multiply_by_inverse(const Graph& graph) {
  return replaced(graph, [&](Builder& builder, uint32_t index, const Values& in) -> Expr {
    const Node& node = graph.node(index);
    int exponent = 0;
    auto c = node.op == Op::kDiv ? number_of(graph, node.in[1]) : std::nullopt;
    if (!c || !dtypes::F.has(node.out[0].dtype) || !std::isfinite(*c)) return {};
    if (std::fabs(std::frexp(*c, &exponent)) != 0.5 || graph.type(node.in[1]).rank() != 0) return {};
    return builder.wrap(in[0]) * (1 / *c);
  });
}

// A value that is narrowed and widened again is taken unchanged.
std::optional<Graph> forget_rounding(const Graph& graph) {
  return replaced(graph, [&](Builder& builder, uint32_t index, const Values& in) -> Expr {
    const Node& node = graph.node(index);
    const Node* narrow = node.op == Op::kCast ? node_of(graph, node.in[0], Op::kCast) : nullptr;
    if (!narrow || graph.type(narrow->in[0]).dtype != node.out[0].dtype) return {};
    return builder.wrap(builder.graph().node(in[0]).in[0]);
  });
}

// The body's outputs, computed in the graph around it.
Result<Values> inlined(Graph& to, const Graph& body, const Values& in) {
  std::vector<Values> map(body.nodes().size());
  for (size_t i = 0; i < body.inputs().size(); i++) map[body.inputs()[i]] = {in[i]};
  for (uint32_t i = 0; i < map.size(); i++) {
    if (!map[i].empty()) continue;
    Values operands;
    for (Value value : body.node(i).in) operands.push_back(present(value) ? map[value.node][value.output] : value);
    map[i] = RLX_TRY(copy_node(body, i, operands, to));
  }
  Values outputs;
  for (const GraphOutput& output : body.outputs()) outputs.push_back(map[output.value.node][output.value.output]);
  return outputs;
}

// A loop's first trip is peeled off without asking its condition.
std::optional<Graph> peel_unasked(const Graph& graph) {
  bool any = false;
  auto made = edited(graph, [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Node& node = graph.node(index);
    if (node.op != Op::kWhile || node.attrs.i64("max_trips") >= 0) return copy_node(graph, index, in, to);
    any = true;
    Values next = RLX_TRY(inlined(to, *node.attrs.graph("body"), in));
    for (size_t i = next.size(); i < in.size(); i++) next.push_back(in[i]);
    return copy_node(graph, index, next, to);
  });
  return any && made.ok() ? std::optional(std::move(*made)) : std::nullopt;
}

// The order of steps is lost.
std::optional<Graph> scan_forward(const Graph& graph) {
  bool any = false;
  auto made = edited(graph, [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Node& node = graph.node(index);
    if (node.op != Op::kScan || !node.attrs.flag("reverse")) return copy_node(graph, index, in, to);
    any = true;
    return copy_node(graph, index, in, to, node.attrs.with("reverse", int64_t{0}));
  });
  return any && made.ok() ? std::optional(std::move(*made)) : std::nullopt;
}

// A rule that required one batch, and then declined, has left its guard.
std::optional<Graph> keep_guard_of_declined(const Graph& graph) {
  auto made = pruned(graph);
  if (!made.ok()) return std::nullopt;
  bool any = false;
  for (const Node& node : graph.nodes()) {
    if (node.op != Op::kMatmul) continue;
    const auto &a = graph.type(node.in[0]).dims, &b = graph.type(node.in[1]).dims;
    if (a.size() < 3 || a.size() != b.size() || !a[0].symbol_name() || !b[0].is(1)) continue;
    any |= made->add_guard({Guard::kEqual, 1, a[0], "attention"}).ok();
  }
  return any ? std::optional(std::move(*made)) : std::nullopt;
}

// What is gathered by positions is a slice: which asks that there are so many, also where another size leaves nothing
// to read.
std::optional<Graph> guard_of_empty_gather(const Graph& graph) {
  auto made = pruned(graph);
  if (!made.ok()) return std::nullopt;
  bool any = false;
  for (uint32_t i = 0; i < made->nodes().size(); i++) {
    Node node = made->node(i);
    if (node.op != Op::kGather) continue;
    const Node* positions = &made->node(node.in[1]);
    while (made->info(*positions).is(kView)) positions = &made->node(positions->in[0]);
    const Dim& size = made->type(node.in[0]).dims[static_cast<size_t>(node.attrs.i64("axis"))];
    if (positions->op != Op::kIota || positions->out[0].rank() != 1) continue;
    any |= made->add_guard({Guard::kLessEqual, positions->out[0].dims[0], size, "gather"}).ok();
  }
  return any ? std::optional(std::move(*made)) : std::nullopt;
}

// Softmax of a transpose, as a transpose of the softmax along the axis that it had.
std::optional<Graph> keep_axis(const Graph& graph) {
  bool any = false;
  auto made = edited(graph, [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Node& node = graph.node(index);
    bool has_axis = node.op == Op::kSoftmax || node.op == Op::kLogSoftmax || node.op == Op::kCumulative;
    if (!has_axis || !node_of(graph, node.in[0], Op::kTranspose)) return copy_node(graph, index, in, to);
    Node turned = to.node(in[0]);
    if (turned.op != Op::kTranspose) return copy_node(graph, index, in, to);
    any = true;
    Value y = RLX_TRY(to.add(graph.info(node), turned.in, node.attrs));
    return Values{RLX_TRY(to.add(to.info(turned), std::array{y}, turned.attrs))};
  });
  return any && made.ok() ? std::optional(std::move(*made)) : std::nullopt;
}

// A size that is a symbol, taken for the one that it had in some run.
std::optional<Graph> freeze_size(const Graph& graph) {
  return replaced(graph, [&](Builder& builder, uint32_t index, const Values&) -> Expr {
    const Node& node = graph.node(index);
    if (node.op != Op::kDimSize ||
        graph.type(node.in[0]).dims[static_cast<size_t>(node.attrs.i64("axis"))].is_literal())
      return {};
    return builder.scalar(DType::kI64, 3);
  });
}

// A norm is formed although the mean has another reader.
std::optional<Graph> drop_statistic(const Graph& graph) {
  auto made = pruned(graph);
  if (!made.ok()) return std::nullopt;
  auto uses = use_counts(*made);
  std::vector<GraphOutput> outputs = made->outputs();
  bool any = false;
  for (GraphOutput& output : outputs) {
    Op op = made->node(output.value).op;
    if ((op != Op::kMean && op != Op::kReduce) || uses[output.value.node][0] < 2) continue;
    Builder builder(*made);
    Expr mean = builder.wrap(output.value);
    output.value = (mean - mean).value();
    any |= present(output.value);
  }
  auto changed = with_outputs(*made, outputs, Leaves::kAll);
  return any && changed.ok() ? std::optional(std::move(*changed)) : std::nullopt;
}

// ---- close: they read what stands above a node in the copy ----

// s2 * tanh(s1 * tanh(x)) -> s2 * tanh(s1 * x)
std::optional<Graph> lose_inner_cap(const Graph& graph) {
  return replaced(graph, [&](Builder& builder, uint32_t index, const Values& in) -> Expr {
    if (graph.node(index).op != Op::kTanh) return {};
    const Graph& to = builder.graph();
    Node scale = to.node(in[0]);
    if ((scale.op != Op::kMul && scale.op != Op::kDiv) || !number_of(to, scale.in[1])) return {};
    const Node* inner = node_of(to, scale.in[0], Op::kTanh);
    return inner ? tanh(binary(scale.op, builder.wrap(inner->in[0]), builder.wrap(scale.in[1]))) : Expr();
  });
}

// where(M, s, low) * c -> where(M, s * c, -inf)
std::optional<Graph> harden_mask(const Graph& graph) {
  return replaced(graph, [&](Builder& builder, uint32_t index, const Values& in) -> Expr {
    const Node& node = graph.node(index);
    const Graph& to = builder.graph();
    if ((node.op != Op::kMul && node.op != Op::kDiv) || !node_of(to, in[0], Op::kWhere) || !number_of(to, in[1]))
      return {};
    Node mask = to.node(in[0]);
    auto low = number_of(to, mask.in[2]);
    if (!low || *low > -1e4) return {};
    Expr scores = binary(node.op, builder.wrap(mask.in[1]), builder.wrap(in[1]));
    return where(builder.wrap(mask.in[0]), scores, -INFINITY);
  });
}

}  // namespace

std::span<const Planted> planted_faults() {
  static constexpr Planted kPlanted[] = {
      {"a comparison of integers that wrap, decided as if they did not", true, false, compare_without_wrapping},
      {"x / c as a product with an infinite 1 / c", true, false, multiply_by_inverse},
      {"a rounding between two casts left out", true, false, forget_rounding},
      {"an axis that a transpose has moved, taken for where it was", true, false, keep_axis},
      {"a trip of a loop that its condition forbids", true, false, peel_unasked},
      {"a scan in the wrong direction", true, false, scan_forward},
      {"a guard of a rule that declined", true, false, keep_guard_of_declined},
      {"a guard of positions that nobody reads, where a size is 0", true, true, guard_of_empty_gather},
      {"a size of one run taken for that of all", true, false, freeze_size},
      {"a statistic that is read, dropped", true, false, drop_statistic},
      {"the inner one of two soft caps left out", false, false, lose_inner_cap},
      {"a mask before a scale made hard", false, false, harden_mask},
  };
  return kPlanted;
}

}  // namespace rlx::test
