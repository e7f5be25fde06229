// SPDX-License-Identifier: Apache-2.0
// Functions of a model: their nodes replace the node that calls them, in a scope of their own.
#include <algorithm>

#include "import/onnx/importer.h"

namespace rlx::onnx {

static constexpr size_t kMaxNested = 32;        // depth of functions that call one another
static constexpr size_t kMaxNodes = 1'000'000;  // of calls and trips: a small file must not grow without end

// The attribute of the call, or its default, under the name that the inner node gives it; nullopt if there is neither.
static std::optional<AttributeProto> given(const AttributeProto& inner, const FunctionProto& function,
                                           const NodeProto& call) {
  for (const auto* list : {&call.attribute, &function.attribute_proto})
    for (const AttributeProto& outer : *list) {
      if (outer.name != inner.ref_attr_name) continue;
      AttributeProto copy = outer;
      copy.name = inner.name;
      return copy;
    }
  return std::nullopt;
}

static void bind_attributes(std::vector<NodeProto>& nodes, const FunctionProto& function, const NodeProto& call) {
  for (NodeProto& node : nodes) {
    std::vector<AttributeProto> bound;
    for (AttributeProto& attribute : node.attribute) {
      for (GraphProto& graph : attribute.graphs) bind_attributes(graph.node, function, call);
      if (attribute.ref_attr_name.empty())
        bound.push_back(std::move(attribute));
      else if (auto outer = given(attribute, function, call))
        bound.push_back(std::move(*outer));
    }
    node.attribute = std::move(bound);
  }
}

Status Importer::count_expanded(size_t nodes) {
  expanded_ += nodes;
  return expanded_ <= kMaxNodes ? Status() : Status(Code::kData, "functions or loops that become far too many nodes");
}

Status Importer::expand(const FunctionProto& function, const NodeProto& node, const std::vector<OnnxValue*>& in) {
  RLX_TRY(count_expanded(function.node.size()));
  bool recurs = std::ranges::find(functions_, &function) != functions_.end();
  if (recurs) return Status(Code::kData, "functions that call one another recursively");
  if (functions_.size() >= kMaxNested)
    return Status(Code::kUnsupported, format("functions that call one another more than {} deep", kMaxNested));
  if (in.size() > function.input.size() || node.output.size() > function.output.size())
    return Status(Code::kData, "the call has more inputs or outputs than the function");
  GraphProto& body = made_graphs_.emplace_back();  // initializers of its sub-graphs are read when they are asked for
  body.node = function.node;
  bind_attributes(body.node, function, node);
  for (std::string_view name : function.output) body.output.push_back({name, {}});
  Scope scope;
  for (size_t i = 0; i < function.input.size(); i++) {
    OnnxValue value;
    value.absent = true;
    if (i < in.size() && in[i]) value = RLX_TRY(local(*in[i]));  // keeps its own name
    scope.emplace(function.input[i], std::move(value));
  }
  std::vector<OnnxValue> results;
  functions_.push_back(&function);
  scopes_.push_back(std::move(scope));
  auto walk = [&]() -> Status {
    RLX_TRY(add_nodes(body));
    for (size_t i = 0; i < node.output.size(); i++)
      results.push_back(RLX_TRY(local(*RLX_TRY(find(function.output[i])))));
    return {};
  };
  Status status = walk();
  scopes_.pop_back();
  functions_.pop_back();
  RLX_TRY(std::move(status));
  return store(node, std::move(results));
}

}  // namespace rlx::onnx
