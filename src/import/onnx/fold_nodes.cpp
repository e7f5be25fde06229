// SPDX-License-Identifier: Apache-2.0
// Nodes on small literals: the importer computes their results, by the ops that their builders make on a scratch graph.
// (Kinds that compute sizes by a function of their own are in fold.h.)
#include <algorithm>

#include "import/onnx/importer.h"
#include "ops/interpret.h"

namespace rlx::onnx {

static constexpr int64_t kMaxLiteral = 64;  // elements of literals that the importer computes with

// Whether the node is small and gives the same bits on every device (semantics.md R5), or only picks elements.
static bool may_fold(const Graph& graph, const Node& step) {
  const OpInfo& info = graph.info(step);
  bool picks = step.op == Op::kReduce && (step.attrs.is("fn", "max") || step.attrs.is("fn", "min"));
  bool exact = picks || info.tol == Tol::kE0 || info.tol == Tol::kU1;
  for (const ValueType& type : step.out) {
    if (is_float(type.dtype) && !exact) return false;
    if (graph.range(element_count(type.dims)).hi > kMaxLiteral) return false;
  }
  return info.primitive() || info.is(kElementwise) || info.decides_sizes;  // others may hold large values inside
}

// The results of a node on small literals, computed by the reference interpreter.
Importer::Computed Importer::compute(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in) {
  for (const OnnxValue* value : in) {
    if (!value) continue;
    bool is_literal = value->sizes && std::all_of(value->sizes->items.begin(), value->sizes->items.end(),
                                                  [](const Dim& dim) { return dim.is_literal(); });
    if (is_literal) continue;
    if (!value->tensor || value->tensor.count() > kMaxLiteral || may_be_param(*value, value->tensor))
      return std::nullopt;
  }
  Graph aside;
  Builder builder(aside);
  Call call(*this, builder, kind, node, opset_of(node.domain), in);
  kind.build(call);
  if (!call.status().ok()) return std::nullopt;  // the builder will report it, with its reason
  for (const Node& step : aside.nodes())
    if (!may_fold(aside, step)) return std::nullopt;
  for (size_t i = 0; i < call.results().size(); i++) {
    const OnnxValue& result = call.results()[i];
    if (!present(result.value) || result.bits != 0) return std::nullopt;
    if (!aside.add_output("y" + std::to_string(i), result.value).ok()) return std::nullopt;
  }
  auto tensors = interpret(aside, {});
  return tensors.ok() ? Computed(std::move(*tensors)) : std::nullopt;
}

// Sizes may depend on what is computed here.
bool Importer::fold_literals(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in) {
  if (in.empty()) return false;
  Computed tensors = compute(kind, node, in);
  if (!tensors) return false;
  std::vector<OnnxValue> results;
  for (Tensor& tensor : *tensors)
    results.push_back({.type = {tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}}, .tensor = tensor});
  return store(node, std::move(results)).ok();
}

// Folds a node that moves sizes without reading them: it runs on the positions of the elements instead, and the result
// says where each element comes from.
bool Importer::fold_moves(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in) {
  std::deque<OnnxValue> numbered;
  std::vector<OnnxValue*> stand_ins = in;
  std::vector<Dim> moved;
  DType dtype = DType::kI64;
  for (size_t i = 0; i < in.size(); i++) {
    if (!in[i] || i >= 8 * sizeof kind.moves || !(kind.moves >> i & 1)) continue;
    if (!in[i]->sizes) return false;
    const Sizes& sizes = *in[i]->sizes;
    auto numbers = Tensor::create(DType::kI64, sizes.dims);
    if (!numbers.ok()) return false;
    for (size_t k = 0; k < sizes.items.size(); k++) numbers->as<int64_t>()[k] = static_cast<int64_t>(moved.size() + k);
    moved.insert(moved.end(), sizes.items.begin(), sizes.items.end());
    dtype = sizes.dtype;
    OnnxValue stand_in{.type = {DType::kI64, {sizes.dims.begin(), sizes.dims.end()}}};
    stand_in.tensor = std::move(*numbers);
    stand_ins[i] = &numbered.emplace_back(std::move(stand_in));
  }
  Computed tensors = moved.empty() ? std::nullopt : compute(kind, node, stand_ins);
  if (!tensors) return false;
  std::vector<OnnxValue> results;
  for (const Tensor& tensor : *tensors) {
    Sizes sizes{dtype, {tensor.dims().begin(), tensor.dims().end()}, {}};
    if (tensor.dtype() != DType::kI64 || tensor.count() > static_cast<int64_t>(kMaxSizes)) return false;
    for (int64_t i = 0; i < tensor.count(); i++)
      sizes.items.push_back(moved[static_cast<size_t>(tensor.as<int64_t>()[i])]);
    OnnxValue result{.type = {dtype, {sizes.dims.begin(), sizes.dims.end()}}};
    result.sizes = std::move(sizes);
    results.push_back(std::move(result));
  }
  return store(node, std::move(results)).ok();
}

}  // namespace rlx::onnx
