// SPDX-License-Identifier: Apache-2.0
// Sub-graphs that become bodies. In ONNX they may read any value around them. Our bodies are closed, so each such value
// becomes an input, at every level between the body and the graph that has it.
#include "import/onnx/importer.h"

namespace rlx::onnx {

Result<std::shared_ptr<const Graph>> BodyGraph::finish() {
  for (size_t i = 0; i < outputs.size(); i++) RLX_TRY(graph.add_output("y" + std::to_string(i), outputs[i]));
  return std::make_shared<const Graph>(std::move(graph));
}

Result<Value> Importer::capture(OnnxValue& value) {
  Level& level = levels_.back();
  if (auto known = level.inputs.find(&value); known != level.inputs.end()) return known->second;
  std::string name = "captured." + std::to_string(level.captures.size());
  Value input = RLX_TRY(out_.graph.add_input(name, value.type.dtype, value.type.dims));
  level.inputs.emplace(&value, input);
  level.captures.push_back(&value);
  return input;
}

Result<OnnxValue> Importer::local(OnnxValue& value) {
  OnnxValue copy = value;
  if (value.level == levels_.size()) return copy;  // and so are its elements
  if (value.value != kInvalid) copy.value = RLX_TRY(capture(value));
  for (size_t i = 0; i < copy.items.size(); i++) copy.items[i] = RLX_TRY(local(value.items[i]));
  copy.level = levels_.size();
  return copy;
}

Status Importer::fill_body(const GraphProto& graph, std::span<const ValueType> inputs, BodyGraph& body) {
  if (graph.input.size() != inputs.size())
    return Status(Code::kData, format("a body takes {} inputs, not {}", graph.input.size(), inputs.size()));
  std::vector<OnnxValue*> captures = std::move(body.captures);
  for (size_t i = 0; i < inputs.size(); i++) {
    Value input = RLX_TRY(out_.graph.add_input(graph.input[i].name, inputs[i].dtype, inputs[i].dims));
    RLX_TRY(define(graph.input[i].name, {.type = inputs[i], .value = input}));
  }
  for (OnnxValue* value : captures) (void)RLX_TRY(capture(*value));
  RLX_TRY(add_initializers(graph));
  RLX_TRY(add_nodes(graph));
  Builder builder(out_.graph);
  for (const ValueInfoProto& output : graph.output) {
    OnnxValue* value = RLX_TRY(find(output.name));
    if (value->refused) return refused("a node of its body cannot be imported").with(kFollowsRefused, output.name);
    body.outputs.push_back(expr(*value, builder).value());
    RLX_TRY(Status(builder.status()));
  }
  return {};
}

Result<BodyGraph> Importer::body_graph(const GraphProto& graph, std::span<const ValueType> inputs,
                                       std::span<OnnxValue* const> captures) {
  BodyGraph body{Graph(std::string(graph.name)), {}, {captures.begin(), captures.end()}};
  for (const auto& [name, range] : out_.graph.symbols()) RLX_TRY(body.graph.declare_symbol(name, range));
  std::swap(out_.graph, body.graph);
  levels_.push_back({&body.graph, {}, {}, {}});
  scopes_.emplace_back();
  Status status = fill_body(graph, inputs, body);
  scopes_.pop_back();
  body.captures = std::move(levels_.back().captures);
  levels_.pop_back();
  std::swap(out_.graph, body.graph);
  RLX_TRY(std::move(status));
  return body;
}

}  // namespace rlx::onnx
