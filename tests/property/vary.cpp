// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "base/visit.h"
#include "draw.h"
#include "edit.h"
#include "examples.h"

namespace rlx::test {

namespace {

// The number of a constant, as a tensor whose axes are all 1, or with as many elements as another operand has.
Result<Values> enlarged(Graph& to, const Tensor& value, Random& random) {
  static constexpr int64_t kWidths[] = {1, 1, 2, 3, 4};
  Builder builder(to);
  std::vector<Dim> ones(static_cast<size_t>(random.between(1, 4)), Dim(1)), wide = ones;
  wide.back() = random.pick(kWidths);
  Expr number = broadcast_to(reshape(builder.constant(value), ones), wide);
  RLX_TRY(builder.status());
  return Values{number.value()};
}

Tensor nearly(const Tensor& value, Random& random) {
  Tensor other = *Tensor::create(value.dtype(), value.dims());
  double factor = 1 + random.pick(std::array{1e-6, -1e-6, 1e-5, 1e-3, 4e-3, -1e-2});
  for (int64_t i = 0; i < value.count(); i++) {
    Tensor scalar = *scalar_tensor(value.dtype(), element_as_f64(value, i) * factor);
    auto unit = static_cast<size_t>(element_bytes(value.dtype()));
    std::copy_n(scalar.data(), unit, other.data() + static_cast<size_t>(i) * unit);
  }
  return other;
}

Result<Graph> with_other_constants(const Graph& graph, Random& random) {
  int percent = random.pick(std::array{20, 50, 100});
  int64_t kind = random.below(5);
  return edited(graph, [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Tensor* value = graph.constant({index, 0});
    if (!value || !random.chance(percent)) return copy_node(graph, index, in, to);
    if (kind == 0 && is_float(value->dtype())) return Values{RLX_TRY(to.add_constant(nearly(*value, random)))};
    if (kind < 3 && value->count() == 1) return enlarged(to, *value, random);
    return Values{RLX_TRY(to.add_constant(random_constant(random, value->dtype(), value->dims())))};
  });
}

Result<Graph> with_other_leaves(const Graph& graph, Random& random) {
  return edited(graph, [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    const Node& node = graph.node(index);
    bool is_literal = !node.out.empty() && all_literal(node.out[0].dims);
    if ((node.op != Op::kInput && node.op != Op::kParam) || !is_literal || !random.chance(40))
      return copy_node(graph, index, in, to);
    const auto& [dtype, dims] = node.out[0];
    std::vector<int64_t> sizes;
    for (const Dim& dim : dims) sizes.push_back(dim.literal());
    int64_t kind = random.below(3);
    return Values{RLX_TRY(kind == 0   ? to.add_constant(random_constant(random, dtype, sizes))
                          : kind == 1 ? to.add_input(graph.leaf_name(index), dtype, dims)
                                      : to.add_param(graph.leaf_name(index), dtype, dims))};
  });
}

Result<Graph> with_operands_exchanged(const Graph& graph, Random& random) {
  return edited(graph, [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    Values other = in;
    if (graph.info(graph.node(index)).is(kCommutative) && in.size() == 2 && random.chance(50))
      std::swap(other[0], other[1]);
    return copy_node(graph, index, other, to);
  });
}

// Makes inner values outputs, or gives them other readers.
Graph with_other_uses(Graph graph, Random& random) {
  std::vector<Value> inner;
  for (uint32_t node = 0; node < graph.nodes().size(); node++)
    for (uint32_t i = 0; i < graph.node(node).out.size(); i++)
      if (!graph.info(graph.node(node)).is(kLeaf)) inner.push_back({node, i});
  for (int64_t count = random.between(1, 2); count > 0 && !inner.empty(); count--) {
    Value value = random.pick(inner);
    if (random.chance(50)) {
      auto reader = graph.add(random.pick(std::array{Op::kNeg, Op::kAbs, Op::kExp}), std::array{value});
      if (reader.ok()) value = *reader;
    }
    (void)graph.add_output("other" + std::to_string(count), value);
  }
  return graph;
}

template <class Change>
void change(Graph& graph, Random& random, int percent, const Change& change) {
  if (!random.chance(percent)) return;
  auto other = change(graph, random);
  if (other.ok() && !other->outputs().empty()) graph = std::move(*other);
}

}  // namespace

Graph varied(Graph graph, Random& random) {
  change(graph, random, 35, with_operands_exchanged);
  change(graph, random, 25, with_other_constants);
  change(graph, random, 20, with_other_leaves);
  for (int64_t misses = random.pick(std::array{0, 0, 0, 1, 1, 2}); misses > 0; misses--)
    if (auto other = near_miss(graph, random)) graph = std::move(*other);
  if (random.chance(25)) graph = with_other_uses(std::move(graph), random);
  return graph;
}

void add_extremes(RandomGraph& made, Random& random) {
  for (auto& run : made.runs)
    for (Tensor& input : run)
      if (random.chance(60)) input = with_extremes(random, input);
  for (auto& [name, param] : made.params)
    if (random.chance(40)) param = with_extremes(random, param);
}

bool has_finite_fill(const Graph& graph) {
  bool has_softmax = false, has_fill = false;
  visit_nodes(graph, [&](const Graph&, const Node& node) {
    has_softmax |= node.op == Op::kSoftmax || node.op == Op::kExp || node.op == Op::kAttention;
    if (node.op != Op::kConstant || !is_float(node.out[0].dtype)) return;
    const Tensor& value = node.attrs.tensor("value");
    for (int64_t i = 0; i < value.count(); i++)
      has_fill |= std::isfinite(element_as_f64(value, i)) && element_as_f64(value, i) <= -1e4;
  });
  return has_softmax && has_fill;
}

void make_tame(RandomGraph& made) {
  auto tame = [](Tensor& given) {
    if (!is_float(given.dtype())) return;
    Tensor tensor = *Tensor::create(given.dtype(), given.dims());
    visit<dtypes::F>(given.dtype(), [&]<class T>() {
      for (int64_t i = 0; i < given.count(); i++) {
        T value = given.as<T>()[i];
        tensor.as<T>()[i] = std::fabs(static_cast<double>(value)) <= 100 ? value : T(1.0f);
      }
    });
    given = tensor;
  };
  for (auto& run : made.runs)
    for (Tensor& input : run) tame(input);
  for (auto& [name, param] : made.params) tame(param);
}

}  // namespace rlx::test
