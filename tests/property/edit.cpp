// SPDX-License-Identifier: Apache-2.0
#include "edit.h"

#include <algorithm>
#include <set>

#include "ir/outputs.h"
#include "ir/symbols.h"

namespace rlx::test {

namespace {

// Nodes that outputs need, and those that decide a size which one of these names.
std::vector<bool> needed_nodes(const Graph& graph, const std::vector<GraphOutput>& outputs, Leaves leaves) {
  std::vector<bool> needed(graph.nodes().size());
  std::set<std::string, std::less<>> symbols;
  std::vector<DecidedSize> decided = decided_sizes(graph);
  for (const GraphOutput& output : outputs) needed[output.value.node] = true;
  if (leaves == Leaves::kAll)
    for (uint32_t leaf : graph.inputs()) needed[leaf] = true;
  for (size_t i = needed.size(); i-- > 0;) {
    for (const DecidedSize& size : decided)
      if (size.node == i && symbols.contains(size.symbol)) needed[i] = true;
    if (!needed[i]) continue;
    visit_symbols(graph.node(static_cast<uint32_t>(i)), [&](const std::string& symbol) { symbols.insert(symbol); });
    for (Value value : graph.node(static_cast<uint32_t>(i)).in)
      if (present(value)) needed[value.node] = true;
  }
  return needed;
}

Status keep_guards(const Graph& from, Graph& to) {
  for (const Guard& guard : from.guards()) {
    bool is_known = true;
    visit_symbols(guard, [&](const std::string& symbol) { is_known &= to.has_symbol(symbol); });
    if (is_known) RLX_TRY(to.declare_guard(guard));
  }
  return {};
}

// As where a text is read: a size keeps its form, since an `if` behind it may name the sizes that differ in form.
void keep_forms(const Node& given, const Values& made, Graph& to) {
  for (size_t i = 0; i < given.out.size(); i++)
    if (to.is_same_type(to.type(made[i]), given.out[i])) to.set_type(made[i], given.out[i]);
}

Result<Graph> copied(const Graph& from, const std::vector<GraphOutput>& outputs, const NodeEdit& edit, Leaves leaves,
                     Guards guards) {
  std::vector<bool> needed = needed_nodes(from, outputs, leaves);
  std::set<std::string, std::less<>> symbols;
  for (uint32_t i = 0; i < needed.size(); i++)
    if (needed[i]) visit_symbols(from.node(i), [&](const std::string& symbol) { symbols.insert(symbol); });
  // What an edit makes longer may decide a larger size than before.
  if (guards == Guards::kAnew)
    for (const DecidedSize& size : decided_sizes(from)) symbols.erase(size.symbol);
  Graph to(from.name(), &from.table());
  for (const auto& [symbol, range] : from.symbols())
    if (symbols.contains(symbol)) RLX_TRY(to.declare_symbol(symbol, range));
  if (guards == Guards::kKept) RLX_TRY(keep_guards(from, to));
  std::vector<Values> map(needed.size());
  for (uint32_t i = 0; i < needed.size(); i++) {
    if (!needed[i]) continue;
    Values in;
    for (Value value : from.node(i).in) in.push_back(present(value) ? map[value.node][value.output] : value);
    map[i] = RLX_TRY(edit(to, i, in));
    if (map[i].size() < from.node(i).out.size()) return Status(Code::kInternal, "an edit lost an output");
    if (guards == Guards::kKept) keep_forms(from.node(i), map[i], to);
  }
  for (const GraphOutput& output : outputs)
    RLX_TRY(to.add_output(output.name, map[output.value.node][output.value.output]));
  return to;
}

NodeEdit plain_copy(const Graph& from) {
  return [&](Graph& to, uint32_t index, const Values& in) { return copy_node(from, index, in, to); };
}

}  // namespace

Result<Values> copy_node(const Graph& from, uint32_t index, const Values& in, Graph& to) {
  return copy_node(from, index, in, to, from.node(index).attrs);
}

Result<Values> copy_node(const Graph& from, uint32_t index, const Values& in, Graph& to, Attrs attrs) {
  const Node& node = from.node(index);
  const ValueType& type = node.out[0];
  if (node.op == Op::kInput) return Values{RLX_TRY(to.add_input(from.leaf_name(index), type.dtype, type.dims))};
  if (node.op == Op::kParam) {
    if (auto known = to.find_leaf(from.leaf_name(index))) return Values{*known};
    return Values{RLX_TRY(to.add_param(from.leaf_name(index), type.dtype, type.dims))};
  }
  return outputs_of(to, RLX_TRY(to.add(from.info(node), in, std::move(attrs), node.name)).node);
}

Result<Graph> edited(const Graph& from, const NodeEdit& edit, Leaves leaves, Guards guards) {
  Graph to = RLX_TRY(copied(from, from.outputs(), edit, leaves, guards));
  return copied(to, to.outputs(), plain_copy(to), leaves, guards);
}

Result<Graph> with_outputs(const Graph& from, const std::vector<GraphOutput>& outputs, Leaves leaves, Guards guards) {
  return copied(from, outputs, plain_copy(from), leaves, guards);
}

Result<Graph> pruned(const Graph& from, Leaves leaves) {
  return copied(from, from.outputs(), plain_copy(from), leaves, Guards::kAnew);
}

bool has_bodies(const Node& node) {
  return std::any_of(node.attrs.values().begin(), node.attrs.values().end(), [](const AttrValue& value) {
    return std::holds_alternative<std::shared_ptr<const Graph>>(value);
  });
}

Result<Attrs> with_bodies(const Node& node, const BodyEdit& edit) {
  Attrs attrs = node.attrs;
  for (const AttrDef& def : attrs.info()->attrs)
    if (def.kind == AttrKind::kGraph && attrs.has(def.name))
      attrs = attrs.with(def.name, std::make_shared<const Graph>(RLX_TRY(edit(*attrs.graph(def.name)))));
  return attrs;
}

void visit_nodes(const Graph& graph, const std::function<void(const Graph&, const Node&)>& body) {
  for (const Node& node : graph.nodes()) {
    body(graph, node);
    for (const AttrValue& value : node.attrs.values())
      if (auto* inner = std::get_if<std::shared_ptr<const Graph>>(&value); inner && *inner) visit_nodes(**inner, body);
  }
}

Value behind_casts_and_views(const Graph& graph, Value value) {
  auto moves = [&](const Node& node) { return node.op == Op::kCast || graph.info(node).is(kView); };
  while (moves(graph.node(value)) && !graph.node(value).in.empty()) value = graph.node(value).in[0];
  return value;
}

}  // namespace rlx::test
