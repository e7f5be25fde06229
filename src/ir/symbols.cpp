// SPDX-License-Identifier: Apache-2.0
#include "ir/symbols.h"

#include <set>

namespace rlx {

void visit_symbols(const Graph& graph, VisitSymbol visit) {
  for (const Node& node : graph.nodes()) visit_symbols(node, visit);
  for (const Guard& guard : graph.guards()) visit_symbols(guard, visit);
}

// `visit` calls its argument with each symbol.
static Status share(const Graph& from, Graph& to, FunctionRef<void(VisitSymbol)> visit) {
  Status status;
  visit([&](const std::string& symbol) {
    if (status.ok() && !to.has_symbol(symbol)) status = to.declare_symbol(symbol, from.symbol_range(symbol));
  });
  return status;
}

Status share_symbols(const Graph& from, std::span<const Dim> dims, Graph& to) {
  return share(from, to, [&](VisitSymbol each) {
    for (const Dim& dim : dims) visit_symbols(dim, each);
  });
}

Status share_symbols(const Graph& from, const Node& node, Graph& to) {
  return share(from, to, [&](VisitSymbol each) { visit_symbols(node, each); });
}

Result<Graph> with_used_symbols(Graph graph) {
  std::set<std::string> used;
  visit_symbols(graph, [&](const std::string& symbol) { used.insert(symbol); });
  if (!graph.around() && used.size() >= graph.symbols().size()) return graph;
  Graph made(graph.name(), &graph.table());
  for (const std::string& symbol : used)
    if (graph.has_symbol(symbol)) RLX_TRY(made.declare_symbol(symbol, graph.symbol_range(symbol)));
  for (const Guard& guard : graph.guards()) RLX_TRY(made.add_guard(guard));
  for (uint32_t i = 0; i < graph.nodes().size(); i++) made.append_copy(graph, i, graph.node(i).in);
  for (const GraphOutput& output : graph.outputs()) RLX_TRY(made.add_output(output.name, output.value));
  return made;
}

}  // namespace rlx
