// SPDX-License-Identifier: Apache-2.0
#include "ir/with_dims.h"

#include <algorithm>

#include "ir/body.h"

namespace rlx {

Dim with_dims(const Dim& dim, const SymbolDims& dims) {
  return substitute(dim, [&](std::string_view symbol) -> std::optional<Dim> {
    auto found = dims.find(symbol);
    return found == dims.end() ? std::nullopt : std::optional(found->second);
  });
}

std::vector<Dim> with_dims(const std::vector<Dim>& list, const SymbolDims& dims) {
  std::vector<Dim> made;
  for (const Dim& dim : list) made.push_back(with_dims(dim, dims));
  return made;
}

Status require_range(Graph& graph, const Dim& dim, Interval range, const std::string& where) {
  RLX_TRY(graph.add_guard({Guard::kLessEqual, range.lo, dim, where}));
  return range.hi == Interval::kUnbounded ? Status() : graph.add_guard({Guard::kLessEqual, dim, range.hi, where});
}

static Result<Graph> copied(const Graph& graph, const SymbolDims& dims, Graph made);

// A body has its own declarations, so it declares the symbols that come into it. What it has declared of those that go
// is asked of the graph around it.
static Result<Graph> body_with_dims(const Attrs& attrs, const Graph& body, SymbolDims dims, Graph& scope) {
  std::vector<std::string> own = own_symbols(attrs, body);
  for (const std::string& name : own) dims.erase(name);
  Graph made(body.name(), &body.table());
  for (const auto& [symbol, dim] : dims) {
    if (!body.has_symbol(symbol)) continue;
    RLX_TRY(require_range(scope, dim, body.symbol_range(symbol), "the body's size '" + symbol + "'"));
    std::vector<std::string> coming;
    visit_symbols(dim, [&](const std::string& name) { coming.push_back(name); });
    for (const std::string& name : coming) {
      if (std::find(own.begin(), own.end(), name) != own.end())
        return Status(Code::kUnsupported, "the size '" + name + "' has another meaning in a body inside it")
            .with("value", name);
      RLX_TRY(made.declare_symbol(name, scope.symbol_range(name)));
    }
  }
  return copied(body, dims, std::move(made));
}

static Result<Attrs> with_dims(const Attrs& attrs, const SymbolDims& dims, Graph& scope) {
  Attrs made = attrs;
  for (size_t i = 0; i < attrs.values().size(); i++) {
    const AttrValue& value = attrs.values()[i];
    if (auto* dim = std::get_if<Dim>(&value)) made.set(i, with_dims(*dim, dims));
    if (auto* list = std::get_if<std::vector<Dim>>(&value)) made.set(i, with_dims(*list, dims));
    if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body)
      made.set(i, std::make_shared<const Graph>(RLX_TRY(body_with_dims(attrs, **body, dims, scope))));
  }
  return made;
}

// Every node of the graph becomes one node of the copy, in the same order, so values stay the same.
static Result<Value> add(const Graph& from, uint32_t index, const SymbolDims& dims, Graph& to) {
  const Node& node = from.node(index);
  if (node.op == Op::kConstant) return to.append_copy(from, index, {});
  if (node.op == Op::kInput || node.op == Op::kParam) {
    const ValueType& type = node.out[0];
    const std::string& name = from.leaf_name(index);
    return node.op == Op::kInput ? to.add_input(name, type.dtype, with_dims(type.dims, dims))
                                 : to.add_param(name, type.dtype, with_dims(type.dims, dims));
  }
  return to.add(from.info(node), std::span<const Value>(node.in.begin(), node.in.size()),
                RLX_TRY(with_dims(node.attrs, dims, to)), node.name);
}

static Result<Graph> copied(const Graph& graph, const SymbolDims& dims, Graph made) {
  for (const auto& [name, range] : graph.symbols())
    if (!dims.contains(name)) RLX_TRY(made.declare_symbol(name, range));
  for (const Guard& guard : graph.guards())
    if (!guard.is_derived)  // the others are inferred again
      RLX_TRY(made.declare_guard({guard.relation, with_dims(guard.a, dims), with_dims(guard.b, dims), guard.where}));
  for (uint32_t node = 0; node < graph.nodes().size(); node++) RLX_TRY(add(graph, node, dims, made));
  for (const GraphOutput& output : graph.outputs()) RLX_TRY(made.add_output(output.name, output.value));
  return made;
}

Result<Graph> with_dims(const Graph& graph, const SymbolDims& dims, const Graph* around) {
  return copied(graph, dims, Graph(graph.name(), &graph.table(), around));
}

}  // namespace rlx
