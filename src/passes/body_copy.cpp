// SPDX-License-Identifier: Apache-2.0
#include "passes/body_copy.h"

#include <unordered_set>

namespace rlx {

Result<Value> ConeCopy::copy(Value value) {
  if (!present(value)) return value;
  std::vector<uint32_t> waiting{value.node};
  while (!waiting.empty()) {
    uint32_t node = waiting.back();
    size_t before = waiting.size();
    if (!map_.contains(node))
      for (Value input : from_.node(node).in)
        if (present(input) && !map_.contains(input.node)) waiting.push_back(input.node);
    if (waiting.size() > before) continue;  // its inputs first
    waiting.pop_back();
    if (!map_.contains(node)) map_[node] = RLX_TRY(copy_node(node));
  }
  return mapped(value);
}

Value ConeCopy::mapped(Value value) const {
  if (!present(value)) return value;
  Value first = map_.at(value.node);
  return {first.node, first.output + value.output};
}

Result<Value> ConeCopy::copy_node(uint32_t index) {
  const Node& node = from_.node(index);
  if (node.op == Op::kParam) {
    const std::string& name = from_.leaf_name(index);
    if (auto known = to_.find_leaf(name); known && to_.node(*known).op == Op::kParam) return *known;
    return to_.add_param(name, node.out[0].dtype, node.out[0].dims);
  }
  std::vector<Value> in;
  for (Value input : node.in) in.push_back(mapped(input));
  return to_.add(from_.info(node), in, node.attrs, node.name);
}

BodyCopy::BodyCopy(const Graph& body) : from_(body), to_(body.name(), &body.table()) {
  for (const auto& [name, range] : body.symbols()) (void)to_.declare_symbol(name, range);
  for (const Guard& guard : body.guards()) (void)to_.add_guard(guard);
  for (const Node& node : body.nodes()) map_.emplace_back(node.out.size(), kInvalid);
}

Status BodyCopy::keep_input(size_t input, std::string_view name) {
  uint32_t node = from_.inputs()[input];
  const ValueType& type = from_.node(node).out[0];
  set({node, 0}, RLX_TRY(to_.add_input(name, type.dtype, type.dims)));
  return {};
}

Status BodyCopy::copy_rest() {
  auto mapped = [&](Value value) { return present(value) ? map_[value.node][value.output] : value; };
  for (uint32_t i = 0; i < from_.nodes().size(); i++) {
    const Node& node = from_.node(i);
    if (node.op == Op::kInput || is_set({i, 0})) continue;
    Value made;
    if (node.op == Op::kParam) {
      auto known = to_.find_leaf(from_.leaf_name(i));
      made = known ? *known : RLX_TRY(to_.add_param(from_.leaf_name(i), node.out[0].dtype, node.out[0].dims));
    } else {
      std::vector<Value> in;
      for (Value input : node.in) in.push_back(mapped(input));
      made = RLX_TRY(to_.add(from_.info(node), in, node.attrs, node.name));
    }
    for (uint32_t k = 0; k < node.out.size(); k++) set({i, k}, {made.node, k});
  }
  for (const GraphOutput& output : from_.outputs()) RLX_TRY(to_.add_output(output.name, mapped(output.value)));
  return {};
}

// What a body has declared and never used is no size of the graph that it comes into.
static Status declare_used(const Graph& body, Graph& to) {
  std::unordered_set<std::string> used;
  auto use = [&](const std::string& symbol) { used.insert(symbol); };
  for (const Node& node : body.nodes()) visit_symbols(node, use);
  for (const Guard& guard : body.guards())
    for (const Dim* dim : {&guard.a, &guard.b}) visit_symbols(*dim, use);
  for (const auto& [name, range] : body.symbols())
    if (used.contains(name)) RLX_TRY(to.declare_symbol(name, range));
  return {};
}

Status BodyCopy::copy_into(const Graph& body, std::span<const Value> inputs, Graph& to, std::vector<Value>& outputs) {
  RLX_TRY(declare_used(body, to));
  for (const Guard& guard : body.guards()) RLX_TRY(to.add_guard(guard));
  ConeCopy cone(body, to);
  std::unordered_map<uint32_t, Value> given;
  std::vector<std::vector<Value>> map;
  auto mapped = [&](Value value) { return present(value) ? map[value.node][value.output] : value; };
  for (size_t i = 0; i < inputs.size(); i++) given[body.inputs()[i]] = inputs[i];
  for (uint32_t i = 0; i < body.nodes().size(); i++) {
    const Node& node = body.node(i);
    map.emplace_back();
    Value made;
    if (node.op == Op::kInput) {
      map.back().push_back(given.at(i));
      continue;
    }
    if (node.op == Op::kParam) {
      made = RLX_TRY(cone.copy({i, 0}));
    } else {
      std::vector<Value> in;
      for (Value input : node.in) in.push_back(mapped(input));
      made = RLX_TRY(to.add(body.info(node), in, node.attrs, node.name));
    }
    for (uint32_t k = 0; k < node.out.size(); k++) map.back().push_back({made.node, k});
  }
  for (const GraphOutput& output : body.outputs()) outputs.push_back(mapped(output.value));
  return {};
}

}  // namespace rlx
