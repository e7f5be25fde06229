// SPDX-License-Identifier: Apache-2.0
// Evaluates nodes that depend on constants alone, by the typed `eval`: with math=strict only those that every device
// computes to the same bits; the prologue computes the others. Values that depend on params wait for it too. A result
// that is much larger than its inputs, such as that of a broadcast, stays a node. So does a product of large constants,
// and whatever else takes long: the kernels of the prologue are faster.
#include <algorithm>

#include "ops/work.h"
#include "passes/fold.h"
#include "passes/graph_copy.h"
#include "passes/pass.h"

namespace rlx {

// If the inputs have more elements than this together, the result must have no more than they have, and the op must be
// one that may_take_large_inputs.
static constexpr int64_t kMaxElements = int64_t{1} << 16;
static constexpr int64_t kMaxGrowth = 64;  // of a value inside a composite, against the largest input
static constexpr double kWorkEach = 32;    // of an element of the largest input: some 10 ms for kMaxElements

// Whether the node gives the real values of quantised numbers, or these numbers as i32. The rules for products of
// quantised numbers look for such nodes, so they are not folded.
static bool widens_numbers(const Graph& graph, const Node& node) {
  if (element_count(node.out[0].dims).is(1)) return false;
  if (node.op == Op::kDequantizeLinear) return true;
  return node.op == Op::kCast && node.out[0].dtype == DType::kI32 && is_eight_bit(graph.type(node.in[0]).dtype);
}

// Whether every device computes the same bits (semantics.md R5).
static bool has_certain_bits(const Graph& graph, const Node& node) {
  auto is_inexact = [](DType dtype) { return is_float(dtype) || is_complex(dtype); };
  bool is_of_floats =
      std::any_of(node.out.begin(), node.out.end(), [&](const ValueType& type) { return is_inexact(type.dtype); });
  for (Value in : node.in) is_of_floats |= present(in) && is_inexact(graph.type(in).dtype);
  return !is_of_floats || graph.info(node).tol == Tol::kE0;
}

// Most of these ops take time that grows as their inputs do. For the others, such as sort, kWorkEach is the limit.
static bool may_take_large_inputs(const OpInfo& info) {
  return info.is(kElementwise) || info.is(kView) || info.tol == Tol::kE0;
}

static bool worth_folding(const Graph& graph, const Node& node, Grade math) {
  const OpInfo& info = graph.info(node);
  if (info.is(kLeaf) || !info.is(kPure) || info.is(kVaries) || node.in.empty()) return false;
  if (info.has_bodies) return false;
  int64_t given = 0, made = 0;
  for (Value in : node.in) {
    if (!present(in)) continue;
    const Tensor* constant = graph.constant(in);
    if (!constant || is_block(constant->dtype())) return false;
    given += constant->count();
  }
  if (widens_numbers(graph, node) || (math == Grade::kExact && !has_certain_bits(graph, node))) return false;
  for (const ValueType& type : node.out) {
    if (!all_literal(type.dims)) return false;
    made += element_count(type.dims).literal();
  }
  if (given > kMaxElements && !may_take_large_inputs(info)) return false;
  return made <= std::max(given, kMaxElements);
}

// The results of one node, which the interpreter runs as a graph of its own. A composite may need much more inside than
// it takes or gives, as a window does that reaches far beyond its input: then it stays a node.
static Result<std::vector<Tensor>> evaluate_node(const Graph& graph, const Node& node) {
  Graph aside("", &graph.table());
  std::vector<Value> in(node.in.size(), kAbsent);
  int64_t largest = kMaxElements;
  for (size_t i = 0; i < in.size(); i++) {
    if (!present(node.in[i])) continue;
    const Tensor& constant = *graph.constant(node.in[i]);
    in[i] = RLX_TRY(aside.add_constant(constant));
    largest = std::max(largest, constant.count());
  }
  Value value = RLX_TRY(aside.add(graph.info(node), in, node.attrs, node.name));
  for (uint32_t i = 0; i < node.out.size(); i++) RLX_TRY(aside.add_output("out" + std::to_string(i), {value.node, i}));
  MakeTensor make = [&](DType dtype, std::span<const int64_t> dims) -> Result<Tensor> {
    if (element_count(dims).value_or(INT64_MAX) / kMaxGrowth > largest)
      return Status(Code::kNoMemory, "too large for a constant");
    return Tensor::create(dtype, dims);
  };
  return interpret_within(aside, kWorkEach * static_cast<double>(largest), make);
}

std::vector<Tensor> folded(const Graph& graph, const Node& node, Grade math) {
  if (!worth_folding(graph, node, math)) return {};
  auto results = evaluate_node(graph, node);
  return results.ok() ? *std::move(results) : std::vector<Tensor>();  // an index out of range: the run reports it
}

Result<std::vector<Value>> fold_node(Graph& graph, const Node& node, Grade math) {
  std::vector<Value> constants;
  for (Tensor& tensor : folded(graph, node, math)) constants.push_back(RLX_TRY(graph.add_constant(std::move(tensor))));
  return constants;
}

bool has_foldable(const Graph& graph, const PassContext& context) {
  auto is_ready = [&](const Node& node) { return worth_folding(graph, node, context.math); };
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), is_ready);
}

Result<Graph> fold_constants(Graph graph, PassContext& context) {
  if (!has_foldable(graph, context)) return graph;
  return with_replaced(graph, [&](GraphCopy& copy, uint32_t index) -> Result<std::vector<Value>> {
    return fold_node(copy.to(), copy.mapped_node(index), context.math);
  });
}

}  // namespace rlx
