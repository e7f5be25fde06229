// SPDX-License-Identifier: Apache-2.0
#include "ir/body.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "base/lasting.h"

namespace rlx {

std::vector<const Graph*> bodies_of(const Attrs& attrs) {
  std::vector<const Graph*> bodies;
  for (const AttrValue& value : attrs.values())
    if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body) bodies.push_back(body->get());
  return bodies;
}

std::vector<std::string> decided_symbols(const Graph& graph) {
  std::vector<std::string> symbols;
  for (DecidedSize& size : decided_sizes(graph)) symbols.push_back(std::move(size.symbol));
  return symbols;
}

const std::vector<std::string>& carried_symbols(const Attrs& attrs) {
  static const auto& kNone = lasting([] { return std::vector<std::string>(); });
  const std::vector<AttrDef>& defs = attrs.info()->attrs;
  for (size_t i = 0; i < defs.size(); i++)
    if (defs[i].names == NamedSymbols::kCarried)
      if (auto* names = std::get_if<std::vector<std::string>>(&attrs.values()[i])) return *names;
  return kNone;
}

std::vector<std::string> own_symbols(const Attrs& attrs, const Graph& body) {
  std::vector<std::string> own = decided_symbols(body);
  const std::vector<std::string>& carried = carried_symbols(attrs);
  own.insert(own.end(), carried.begin(), carried.end());
  return own;
}

void visit_decided_axes(const Node& node, VisitAxis visit) {
  std::unordered_map<std::string_view, bool> decided;  // by symbol: whether a run finds it
  visit_decided_sizes(node, [&](const std::string& symbol, bool is_fresh) { decided.emplace(symbol, is_fresh); });
  for (uint32_t i = 0; i < node.out.size() && !decided.empty(); i++)
    for (uint32_t axis = 0; axis < node.out[i].rank(); axis++)
      if (const std::string* name = node.out[i].dims[axis].symbol_name(); name && decided.contains(*name))
        visit(i, axis, *name, decided.at(*name));
}

namespace {

// Of a graph, itself included.
struct Nesting {
  int depth = 1;
  int64_t graphs = 1;  // counted once for each place
};

}  // namespace

static Nesting nesting(const Graph& graph, std::unordered_map<const Graph*, Nesting>& known) {
  if (auto found = known.find(&graph); found != known.end()) return found->second;
  Nesting all;
  for (const Node& node : graph.nodes())
    for (const Graph* body : bodies_of(node.attrs)) {
      Nesting inside = nesting(*body, known);
      all.depth = std::max(all.depth, inside.depth + 1);
      all.graphs = std::min(all.graphs + inside.graphs, kMaxBodies);
    }
  return known[&graph] = all;
}

Status check_nesting(const Graph& body) {
  std::unordered_map<const Graph*, Nesting> known;  // one graph may be the body of many nodes
  Nesting found = nesting(body, known);
  if (found.depth < kMaxNestedGraphs && found.graphs < kMaxBodies) return {};
  return Status(Code::kUnsupported, found.depth < kMaxNestedGraphs
                                        ? format("it holds more than {} graphs", kMaxBodies)
                                        : format("more than {} graphs are nested", kMaxNestedGraphs))
      .with("expected", format("at most {} graphs, nested at most {} deep", kMaxBodies, kMaxNestedGraphs));
}

}  // namespace rlx
