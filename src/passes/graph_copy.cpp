// SPDX-License-Identifier: Apache-2.0
#include "passes/graph_copy.h"

#include <array>
#include <unordered_set>

#include "ir/symbols.h"

namespace rlx {

void GraphCopy::set_outputs(uint32_t node, std::span<const Value> copies) {
  for (uint32_t i = 0; i < copies.size(); i++) set({node, i}, copies[i]);
}

// An output that already has a copy keeps it.
void GraphCopy::set_made(uint32_t node, Value made) {
  for (uint32_t i = 0; i < from_.node(node).out.size(); i++) map_.try_emplace(key_of({node, i}), Value{made.node, i});
}

std::vector<Value> GraphCopy::mapped(std::span<const Value> values) const {
  std::vector<Value> copies;
  copies.reserve(values.size());
  for (Value value : values) copies.push_back(mapped(value));
  return copies;
}

Node GraphCopy::mapped_node(uint32_t index) const {
  Node node = from_.node(index);
  for (Value& value : node.in) value = mapped(value);
  return node;
}

Status GraphCopy::declare() {
  if (from_.is_prologue()) to_.set_prologue();
  for (const auto& [name, range] : from_.symbols()) RLX_TRY(to_.declare_symbol(name, range));
  for (const Guard& guard : from_.guards()) RLX_TRY(to_.add_guard(guard));
  return {};
}

Status GraphCopy::declare_used() {
  std::unordered_set<std::string> used;
  visit_symbols(from_, [&](const std::string& symbol) { used.insert(symbol); });
  for (const auto& [name, range] : from_.symbols())
    if (used.contains(name) && !to_.has_symbol(name)) RLX_TRY(to_.declare_symbol(name, range));
  for (const Guard& guard : from_.guards()) RLX_TRY(to_.add_guard(guard));
  return {};
}

Status GraphCopy::add_input(size_t input, std::string_view name) {
  uint32_t node = from_.inputs()[input];
  const ValueType& type = from_.node(node).out[0];
  set({node, 0}, RLX_TRY(to_.add_input(name, type.dtype, type.dims)));
  return {};
}

Status GraphCopy::add_outputs() {
  for (const GraphOutput& output : from_.outputs()) RLX_TRY(to_.add_output(output.name, mapped(output.value)));
  return {};
}

void GraphCopy::copy_keeping_types(uint32_t node) {
  set_made(node, to_.append_copy(from_, node, mapped(from_.node(node).in)));
}

Status GraphCopy::copy_inferring_types(uint32_t index) {
  const Node& node = from_.node(index);
  if (node.op == Op::kParam) {
    const std::string& name = from_.leaf_name(index);
    auto known = to_.find_param(name);
    set({index, 0}, known ? *known : RLX_TRY(to_.add_param(name, node.out[0].dtype, node.out[0].dims)));
    return {};
  }
  set_made(index, RLX_TRY(to_.add(from_.info(node), mapped(node.in), node.attrs, node.name)));
  return {};
}

Status GraphCopy::copy_uncopied() {
  auto is_there = [this](uint32_t node) {
    for (uint32_t i = 0; i < from_.node(node).out.size(); i++)
      if (!has({node, i})) return false;
    return true;
  };
  for (uint32_t node = 0; node < from_.nodes().size(); node++)
    if (from_.node(node).op == Op::kParam)
      RLX_TRY(copy_inferring_types(node));
    else if (!is_there(node) && from_.node(node).op != Op::kInput)
      copy_keeping_types(node);
  return {};
}

Status GraphCopy::copy_all() {
  for (uint32_t node = 0; node < from_.nodes().size(); node++) copy_keeping_types(node);
  return add_outputs();
}

Result<Value> GraphCopy::copy_cone(Value value) {
  if (!present(value)) return value;
  if (has(value)) return mapped(value);
  std::vector<Value> waiting{value};  // of one node some outputs may be there, and others not
  while (!waiting.empty()) {
    Value next = waiting.back();
    size_t before = waiting.size();
    if (!has(next))
      for (Value input : from_.node(next).in)
        if (present(input) && !has(input)) waiting.push_back(input);
    if (waiting.size() > before) continue;  // its inputs first
    waiting.pop_back();
    if (!has(next)) RLX_TRY(copy_inferring_types(next.node));
  }
  return mapped(value);
}

static bool has_symbols_of(const Graph& graph, const std::vector<Dim>& dims) {
  bool has_all = true;
  for (const Dim& dim : dims)
    visit_symbols(dim, [&](const std::string& symbol) { has_all &= graph.has_symbol(symbol); });
  return has_all;
}

Result<Graph> with_sizes_of(const Graph& given, Graph body) {
  std::unordered_set<uint32_t> seen;
  for (size_t i = 0; i < given.outputs().size(); i++) {
    const std::vector<Dim>& dims = given.type(given.outputs()[i].value).dims;
    Value value = body.outputs()[i].value;
    bool may_change = seen.insert(value.node).second && !body.info(body.node(value)).is(kLeaf);
    if (body.type(value).dims == dims || !has_symbols_of(body, dims)) continue;
    if (!may_change) {
      value = RLX_TRY(body.add(Op::kReshape, std::array{value}, {{"shape", dims}}));
      body.set_output(i, value);
    }
    body.set_type(value, {body.type(value).dtype, dims});
  }
  return body;
}

// The constants that stand for nodes of the given graph: where each is the operand of the next, thousands of them come
// and go. The bytes of one that nothing reads any more are dropped at once, not with the dead nodes at the end.
class MadeConstants {
 public:
  MadeConstants(const Graph& given, const Graph& made)
      : given_(given), uses_(use_counts(given)), left_(made.nodes().size()), is_kept_(made.nodes().size(), true) {}

  // To be called after each node, with the number of nodes that the copy had before it.
  void note(GraphCopy& copy, uint32_t node, size_t before) {
    Graph& made = copy.to();
    left_.resize(made.nodes().size(), 0);
    is_kept_.resize(made.nodes().size(), false);
    for (size_t i = before; i < made.nodes().size(); i++)
      for (Value in : made.nodes()[i].in)
        if (present(in)) is_kept_[in.node] = true;
    for (uint32_t i = 0; i < given_.node(node).out.size(); i++) {
      uint32_t made_node = copy.mapped({node, i}).node;
      bool is_given = made_node < before || given_.node(node).op == Op::kConstant;
      if (is_given) is_kept_[made_node] = true;
      left_[made_node] += uses_[node][i];
    }
    for (Value in : given_.node(node).in)
      if (present(in)) drop_if_last(made, copy.mapped(in));
  }

 private:
  void drop_if_last(Graph& made, Value value) {
    if (!is_kept_[value.node] && --left_[value.node] == 0) made.drop_bytes(value.node);
  }

  const Graph& given_;
  const ByValue<uint32_t> uses_;  // in the given graph
  std::vector<uint32_t> left_;    // by node of the copy: readers of what it stands for that were not replaced yet
  std::vector<bool> is_kept_;  // by node of the copy: another node of the copy reads it, or it was not made for a node
};

Result<Graph> with_replaced(const Graph& graph, ReplaceFn replace) {
  Graph made(graph.name(), &graph.table());
  GraphCopy copy(graph, made);
  RLX_TRY(copy.declare());
  for (uint32_t node : graph.inputs()) copy.copy_keeping_types(node);
  for (uint32_t node : graph.params()) copy.copy_keeping_types(node);
  MadeConstants constants(graph, made);
  for (uint32_t node = 0; node < graph.nodes().size(); node++) {
    if (graph.info(graph.node(node)).is(kInterface)) continue;
    const size_t before = made.nodes().size();
    std::vector<Value> outputs = RLX_TRY(replace(copy, node));
    outputs.empty() ? copy.copy_keeping_types(node) : copy.set_outputs(node, outputs);
    constants.note(copy, node, before);
  }
  RLX_TRY(copy.add_outputs());
  return drop_dead(std::move(made));
}

}  // namespace rlx
