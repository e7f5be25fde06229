// SPDX-License-Identifier: Apache-2.0
#include "exceptions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "edit.h"
#include "ops/expr.h"
#include "tests/support/tolerance.h"

namespace rlx::test {

namespace {

bool is_self_comparison(const Node& node) {
  return (node.op == Op::kEq || node.op == Op::kNe) && node.in[0] == node.in[1];
}

double highest_fill(DType dtype) {
  return dtype == DType::kF16 ? -6e4 : -1e9;
}

// Below all scores, and finite where the oracle computes.
Expr lowest_of_all(Expr like) {
  return -exp(scalar_like(like, 688));
}

// Scores may be low themselves: of what a product is part of, only what became the lowest of all is a mask.
Expr is_mask(Expr x, bool is_score, Masks masks) {
  Expr bound = is_score ? -exp(scalar_like(x, 344)) : scalar_like(x, highest_fill(x.dtype()));
  Expr is_low = less_equal(x, bound);
  return masks == Masks::kAllEqual ? is_low : logical_and(is_low, less(scalar_like(x, -INFINITY), x));
}

Expr masked(Expr x, bool is_score, Masks masks) {
  return where(is_mask(x, is_score, masks), lowest_of_all(x), x);
}

// What a mask forbids is not looked at, whichever of the two it is.
Expr masked_sum(std::span<const Expr> in, std::span<const bool> is_score, Masks masks) {
  Expr sum = in[0] + in[1], nothing = scalar_like(sum, -INFINITY);
  for (Expr x : in) sum = where(equal(x, nothing), nothing, sum);
  for (size_t i = 0; i < 2; i++) sum = where(is_mask(in[i], is_score[i], masks), lowest_of_all(sum), sum);
  return masked(sum, true, masks);
}

// Whether it holds one number for each head of scores, or for each channel.
bool is_factor(Expr x) {
  auto is_long = [](const Dim& dim) { return !dim.is(1); };
  bool per_head = x.rank() >= 3 && x.dim(-1).is(1) && x.dim(-2).is(1);
  return per_head || std::count_if(x.dims().begin(), x.dims().end(), is_long) <= 1;
}

// The operands of the product that y is, behind casts, views and other factors, which this file has edited; none if it
// is no product.
std::array<Value, 2> factors_of_product(Expr y) {
  Builder& builder = y.builder();
  const Graph& graph = builder.graph();
  for (Value at = y.value();;) {
    at = behind_casts_and_views(graph, at);
    const Node& node = graph.node(at);
    if (node.op == Op::kMatmul) return {node.in[0], node.in[1]};
    if (node.op == Op::kWhere) {  // of with_moved_factor
      at = node.in[2];
      continue;
    }
    bool is_scaled = node.op == Op::kMul || node.op == Op::kDiv;
    if (is_scaled && is_factor(builder.wrap(node.in[1])))
      at = node.in[0];
    else if (node.op == Op::kMul && is_factor(builder.wrap(node.in[0])))
      at = node.in[1];
    else
      return {kAbsent, kAbsent};
  }
}

// The sizes of the numbers in an operand that are nearest to 0 and farthest from it; 0, NaN and infinity do not count.
struct Magnitudes {
  Expr least, most;
};
Magnitudes magnitudes_of(Expr operand, DType dtype) {
  Expr size = abs(operand), infinity = scalar_like(size, INFINITY);
  Expr counts = logical_and(greater(size, 0.0), less(size, infinity));
  Axes all(size.rank());
  std::iota(all.begin(), all.end(), 0);
  Expr least = reduce(where(counts, size, infinity), "min", all, KeepDims::kNo);
  Expr most = reduce(where(counts, size, scalar_like(size, 0)), "max", all, KeepDims::kNo);
  return {cast(least, dtype), cast(most, dtype)};
}

// y * t or y / t, where t is such a factor and has moved into an operand, q or w. NaN where that operand may become
// infinite. Also NaN where y is infinite and the operand may be taken for 0, because 0 times infinity is NaN.
Expr with_moved_factor(const Node& node, std::span<const Expr> in) {
  Expr y = binary(node.op, in[0], in[1]);
  for (size_t i = node.op == Op::kDiv ? 1 : 0; i < 2; i++) {
    if (!is_factor(in[i])) continue;
    Expr size = abs(node.op == Op::kDiv ? 1.0 / in[i] : in[i]);
    Expr is_open = equal(size, scalar_like(size, INFINITY));
    for (Value operand : factors_of_product(in[1 - i])) {
      if (!present(operand)) continue;
      auto [least, most] = magnitudes_of(y.builder().wrap(operand), size.dtype());
      Expr overflows = less_equal(scalar_like(size, 0x1p127), size * most);
      Expr vanishes = less(size * least, scalar_like(size, kLeastNormal));
      Expr is_infinite = equal(abs(y), scalar_like(y, INFINITY));
      is_open = logical_or(is_open, logical_or(overflows, logical_and(vanishes, is_infinite)));
    }
    y = where(is_open, scalar_like(y, NAN), y);
  }
  return y;
}

// A batch_norm whose scale of each channel has moved: x * scale + (beta - mean * scale). NaN where a term of this may
// be infinite.
Expr with_moved_scale(const Node& node, std::span<const Expr> in) {
  Expr x = in[0], y = x.builder().ops(Op::kBatchNorm, in, node.attrs.named())[0], gamma = in[1], mean = in[3],
       var = in[4];
  std::vector<Dim> along(y.rank() - 1, 1);
  along[0] = y.dim(1);
  Expr scale = reshape(abs(gamma / sqrt(var + node.attrs.f64("eps"))), along), most = scalar_like(scale, 0x1p127);
  Expr is_finite = less(scale, most);
  for (Expr shifted : {reshape(mean, along), x}) is_finite = logical_and(is_finite, less(scale * abs(shifted), most));
  return where(is_finite, y, scalar_like(y, NAN));
}

// By node, whether a product is part of it.
std::vector<bool> holds_product(const Graph& graph) {
  std::vector<bool> holds(graph.nodes().size());
  for (uint32_t i = 0; i < holds.size(); i++) {
    const Node& node = graph.node(i);
    holds[i] = node.op == Op::kMatmul ||
               std::any_of(node.in.begin(), node.in.end(), [&](Value in) { return present(in) && holds[in.node]; });
  }
  return holds;
}

}  // namespace

bool guards_weights(const Graph& graph, const Node& node) {
  if (node.op != Op::kIsNan && !is_self_comparison(node)) return false;
  Value value = behind_casts_and_views(graph, node.in[0]);
  return graph.node(value).op == Op::kSoftmax || graph.node(value).op == Op::kDiv;
}

bool is_finite_fill(const Node& node) {
  if (node.op != Op::kConstant || !is_float(node.out[0].dtype)) return false;
  const Tensor& tensor = node.attrs.tensor("value");
  for (int64_t i = 0; i < tensor.count(); i++)
    if (double value = element_as_f64(tensor, i);
        std::isfinite(value) && value <= round_to(node.out[0].dtype, highest_fill(node.out[0].dtype)))
      return true;
  return false;
}

Result<Graph> with_exceptions(const Graph& graph, Exceptions made) {
  const std::vector<bool> scores = holds_product(graph);
  auto copy = [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Node& node = graph.node(index);
    Builder builder(to);
    Expr value;
    std::array<Expr, 5> given;
    std::array<bool, 5> is_score{};
    bool counts = is_float(node.out[0].dtype) && in.size() <= given.size();
    for (size_t k = 0; counts && k < in.size(); k++) {
      given[k] = builder.wrap(in[k]);
      is_score[k] = present(node.in[k]) && scores[node.in[k].node];
    }
    if (counts && made.masks != Masks::kAsWritten && node.op == Op::kAdd) {
      value = masked_sum(std::span(given).first(2), std::span(is_score).first(2), made.masks);
    } else if (counts && made.masks != Masks::kAsWritten && node.op == Op::kWhere) {
      value = where(given[0], masked(given[1], is_score[1], made.masks), masked(given[2], is_score[2], made.masks));
    } else if (counts && made.moves_factors && (node.op == Op::kMul || node.op == Op::kDiv)) {
      value = with_moved_factor(node, std::span(given).first(2));
    } else if (counts && made.moves_factors && node.op == Op::kBatchNorm) {
      value = with_moved_scale(node, given);
    } else if (made.drops_guards && guards_weights(graph, node)) {
      Expr x = builder.wrap(in[0]);
      value = node.op == Op::kEq ? equal(less(x, x), less(x, x)) : less(x, x);
    } else {
      auto inner = [&](const Graph& body) { return with_exceptions(body, made); };
      return copy_node(graph, index, in, to, RLX_TRY(with_bodies(node, inner)));
    }
    RLX_TRY(Status(builder.status()));
    return Values{value.value()};
  };
  return edited(graph, copy, Leaves::kAll, Guards::kKept);
}

}  // namespace rlx::test
