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

// The symbols of the dims that come into a body in the place of its symbols.
static std::vector<std::string> coming_into(const Graph& body, const SymbolDims& dims) {
  std::vector<std::string> coming;
  for (const auto& [symbol, dim] : dims)
    if (body.has_symbol(symbol)) visit_symbols(dim, [&](const std::string& name) { coming.push_back(name); });
  return coming;
}

static bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

static std::vector<const Graph*> bodies_of(const Attrs& attrs) {
  std::vector<const Graph*> bodies;
  for (const AttrValue& value : attrs.values())
    if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body) bodies.push_back(body->get());
  return bodies;
}

static bool names_carried(const AttrDef& def) {
  return def.kind == AttrKind::kStrs && def.name == "carried";
}

// New names for symbols that have no meaning outside the bodies of a node, where the new dims have a symbol of that
// name, whether it comes into these bodies or not: an option for the one would be one for the other.
static SymbolDims new_names(const Attrs& attrs, const SymbolDims& dims) {
  std::vector<std::string> own, taken;
  for (const Graph* body : bodies_of(attrs)) {
    for (const std::string& name : own_symbols(attrs, *body)) own.push_back(name);
    for (const auto& [name, range] : body->symbols()) taken.push_back(name);
  }
  std::vector<std::string> coming;
  for (const auto& [symbol, dim] : dims)
    if (!among(own, symbol)) visit_symbols(dim, [&](const std::string& name) { coming.push_back(name); });
  taken.insert(taken.end(), coming.begin(), coming.end());
  SymbolDims renamed;
  for (const std::string& name : own) {
    if (!among(coming, name) || renamed.contains(name)) continue;
    std::string other = name;
    for (int k = 2; among(taken, other); k++) other = name + "." + std::to_string(k);
    taken.push_back(other);
    renamed.emplace(name, Dim::symbol(other));
  }
  return renamed;
}

// A body has its own declarations, so it declares the symbols that come into it. What it has declared of those that go
// is asked of the graph around it.
static Result<Graph> body_with_dims(const Attrs& attrs, const Graph& body, SymbolDims dims, const SymbolDims& renamed,
                                    Graph& scope) {
  std::vector<std::string> own = own_symbols(attrs, body);
  for (const std::string& name : own) dims.erase(name);
  Graph made(body.name(), &body.table());
  for (const std::string& name : coming_into(body, dims)) RLX_TRY(made.declare_symbol(name, scope.symbol_range(name)));
  for (const auto& [symbol, dim] : dims)
    if (body.has_symbol(symbol))
      RLX_TRY(require_range(scope, dim, body.symbol_range(symbol), "the body's size '" + symbol + "'"));
  for (const std::string& name : own)
    if (auto other = renamed.find(name); other != renamed.end()) {
      RLX_TRY(made.declare_symbol(*other->second.symbol_name(), body.symbol_range(name)));
      dims.insert_or_assign(name, other->second);
    }
  return copied(body, dims, std::move(made));
}

static std::string renamed(const std::string& symbol, const SymbolDims& dims) {
  auto found = dims.find(symbol);
  const std::string* other = found == dims.end() ? nullptr : found->second.symbol_name();
  return other ? *other : symbol;
}

// `dims` name a symbol that the node decides, or that its bodies carry, only where it gets a new name.
static AttrValue with_names(const AttrValue& value, const SymbolDims& dims) {
  if (auto* name = std::get_if<std::string>(&value)) return renamed(*name, dims);
  std::vector<std::string> names;
  if (auto* given = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& name : *given) names.push_back(renamed(name, dims));
  return names.empty() ? value : AttrValue(std::move(names));
}

static Result<Attrs> with_dims(const Attrs& attrs, const SymbolDims& dims, Graph& scope) {
  Attrs made = attrs;
  const SymbolDims renamed = new_names(attrs, dims);
  for (size_t i = 0; i < attrs.values().size(); i++) {
    const AttrValue& value = attrs.values()[i];
    const AttrDef& def = attrs.info()->attrs[i];
    if (auto* dim = std::get_if<Dim>(&value)) made.set(i, with_dims(*dim, dims));
    if (auto* list = std::get_if<std::vector<Dim>>(&value)) made.set(i, with_dims(*list, dims));
    if (names_sizes(def)) made.set(i, with_names(value, dims));
    if (names_carried(def)) made.set(i, with_names(value, renamed));
    if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body)
      made.set(i, std::make_shared<const Graph>(RLX_TRY(body_with_dims(attrs, **body, dims, renamed, scope))));
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
