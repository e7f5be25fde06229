// SPDX-License-Identifier: Apache-2.0
// Sub-graphs that become bodies. In ONNX they may read any value around them. Our bodies are closed, so each such value
// becomes an input, at every level between the body and the graph that has it.
#include "import/onnx/importer.h"
#include "ir/symbols.h"

namespace rlx::onnx {

Result<std::shared_ptr<const Graph>> BodyGraph::finish() {
  for (size_t i = 0; i < outputs.size(); i++) RLX_TRY(graph.add_output("y" + std::to_string(i), outputs[i]));
  return std::make_shared<const Graph>(RLX_TRY(with_used_symbols(std::move(graph))));
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
    return Status(Code::kData, format("a body takes {}, not {}", plural(graph.input.size(), "input"), inputs.size()));
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
    if (value->refused)
      return refused("a node of its body cannot be imported")
          .with(kFollowsRefused, output.name)
          .with(kUnrolledOnly, refusals_.unrolls ? "1" : "");
    body.outputs.push_back(expr(*value, builder).value());
    body.bits.push_back(value->bits);
    RLX_TRY(Status(builder.status()));
  }
  return {};
}

Result<const Graph*> Importer::known_symbols() {
  Graph& known = levels_.empty() ? symbols_ : levels_.back().symbols;
  const auto& symbols = out_.graph.symbols();
  for (size_t i = known.symbols().size(); i < symbols.size(); i++)
    RLX_TRY(known.declare_symbol(symbols[i].first, symbols[i].second));
  return &known;
}

Result<BodyGraph> Importer::body_graph(const GraphProto& graph, std::span<const ValueType> inputs,
                                       std::span<OnnxValue* const> captures) {
  const Graph* known = RLX_TRY(known_symbols());
  BodyGraph body{Graph(std::string(graph.name), &op_table(), known), {}, {}, {captures.begin(), captures.end()}};
  std::swap(out_.graph, body.graph);
  levels_.push_back({&body.graph, {}, {}, {}, Graph("", &op_table(), known)});
  scopes_.emplace_back();
  Status status = fill_body(graph, inputs, body);
  scopes_.pop_back();
  body.captures = std::move(levels_.back().captures);
  levels_.pop_back();
  std::swap(out_.graph, body.graph);
  RLX_TRY(std::move(status));
  return body;
}

// A value has one rank. If data choose between results of unequal ranks, all nodes from that If on become part of both
// branches of another If, which gives the outputs of the graph. In each of them the condition is known.
Status Importer::finish_in_branches(const GraphProto& graph, std::span<const size_t> nodes) {
  static constexpr std::byte kTaken[] = {std::byte{0}, std::byte{1}};
  static constexpr int32_t kBoolElements = 9;  // an ElementType
  RLX_TRY(count_expanded(2 * nodes.size()));
  const NodeProto& choice = graph.node[nodes[0]];
  const OnnxValue& condition = *RLX_TRY(find(choice.input[0]));
  GraphProto around;
  NodeProto& both =
      around.node.emplace_back(NodeProto{.input = {choice.input[0]}, .name = choice.name, .op_type = "If"});
  for (const ValueInfoProto& output : graph.output)
    if (!scopes_.back().contains(output.name)) both.output.push_back(output.name);
  for (const char* branch : {"then_branch", "else_branch"}) {
    GraphProto tail{.name = branch};
    bool is_taken = tail.name == "then_branch";
    TensorProto& known = tail.initializer.emplace_back();
    known = {.name = choice.input[0],
             .data_type = kBoolElements,
             .raw_data = std::span(kTaken).subspan(is_taken ? 1 : 0, 1)};
    known.dims.assign(condition.type.rank(), 1);
    for (size_t i : nodes) tail.node.push_back(graph.node[i]);
    for (std::string_view name : both.output) tail.output.push_back({name, {}});
    AttributeProto& attribute = both.attribute.emplace_back();
    attribute = {.name = branch, .type = AttributeProto::kGraph};
    attribute.graphs.push_back(std::move(tail));
  }
  const NodeProto& kept = keep(std::move(around)).node[0];
  Status status = add_node(kept);
  if (status.code() == Code::kUnsupported) return refuse(kept, status), Status();
  if (status.ok()) return {};
  return Status(status.code(), std::string(status.message()));  // maybe the outputs have unequal ranks themselves
}

}  // namespace rlx::onnx
