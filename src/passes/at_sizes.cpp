// SPDX-License-Identifier: Apache-2.0
#include "passes/at_sizes.h"

#include <functional>
#include <map>

#include "ir/body.h"
#include "passes/graph_copy.h"

namespace rlx {

using NamedSizes = std::map<std::string, int64_t, std::less<>>;

static Dim at(const Dim& dim, const NamedSizes& sizes) {
  return substitute(dim, [&](std::string_view symbol) -> std::optional<Dim> {
    auto found = sizes.find(symbol);
    return found == sizes.end() ? std::nullopt : std::optional(Dim(found->second));
  });
}

static std::vector<Dim> at(const std::vector<Dim>& dims, const NamedSizes& sizes) {
  std::vector<Dim> numbers;
  for (const Dim& dim : dims) numbers.push_back(at(dim, sizes));
  return numbers;
}

static Result<Graph> made_at(const Graph& graph, const NamedSizes& sizes);

static Result<Attrs> at(const Attrs& attrs, const NamedSizes& sizes) {
  Attrs numbers = attrs;
  for (size_t i = 0; i < attrs.values().size(); i++) {
    const AttrValue& value = attrs.values()[i];
    if (auto* dim = std::get_if<Dim>(&value)) numbers.set(i, at(*dim, sizes));
    if (auto* dims = std::get_if<std::vector<Dim>>(&value)) numbers.set(i, at(*dims, sizes));
    if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body) {
      NamedSizes seen = sizes;  // without the body's own symbols of the same names
      for (const std::string& own : own_symbols(attrs, **body)) seen.erase(own);
      numbers.set(i, std::make_shared<const Graph>(RLX_TRY(made_at(**body, seen))));
    }
  }
  return numbers;
}

static Result<Value> add(const Graph& from, uint32_t index, const NamedSizes& sizes, GraphCopy& copy) {
  const Node& node = from.node(index);
  if (node.op == Op::kConstant) return copy.to().append_copy(from, index, {});
  if (node.op == Op::kInput || node.op == Op::kParam) {
    const ValueType& type = node.out[0];
    std::vector<Dim> dims = at(type.dims, sizes);
    const std::string& name = from.leaf_name(index);
    return node.op == Op::kInput ? copy.to().add_input(name, type.dtype, dims)
                                 : copy.to().add_param(name, type.dtype, dims);
  }
  return copy.to().add(from.info(node), copy.mapped(node.in), RLX_TRY(at(node.attrs, sizes)), node.name);
}

static Status declare(const Graph& graph, const NamedSizes& sizes, Graph& made) {
  for (const auto& [name, size] : sizes)
    if (Interval range = graph.symbol_range(name); size < range.lo || size > range.hi)
      return Status(Code::kRange, format("the size '{}' = {} is outside of its range", name, size))
          .with("value", name)
          .with("got", std::to_string(size));
  for (const auto& [name, range] : graph.symbols())
    if (!sizes.contains(name)) RLX_TRY(made.declare_symbol(name, range));
  for (const Guard& guard : graph.guards())
    if (guard.where.empty())  // inference adds the guards of nodes again
      RLX_TRY(made.declare_guard({guard.relation, at(guard.a, sizes), at(guard.b, sizes), {}}));
  return {};
}

static Result<Graph> made_at(const Graph& graph, const NamedSizes& sizes) {
  Graph made(graph.name(), &graph.table());
  RLX_TRY(declare(graph, sizes, made));
  GraphCopy copy(graph, made);
  for (uint32_t node = 0; node < graph.nodes().size(); node++) {
    Value first = RLX_TRY(add(graph, node, sizes, copy));
    for (uint32_t i = 0; i < graph.node(node).out.size(); i++) copy.set({node, i}, {first.node, i});
  }
  RLX_TRY(copy.add_outputs());
  return made;
}

Result<Graph> at_sizes(const Graph& graph, const std::vector<std::pair<std::string, int64_t>>& sizes) {
  return made_at(graph, {sizes.begin(), sizes.end()});
}

}  // namespace rlx
