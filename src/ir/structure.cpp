// SPDX-License-Identifier: Apache-2.0
#include "ir/structure.h"

#include <algorithm>

#include "base/hash.h"
#include "ir/graph.h"

namespace rlx {

static bool same_nodes(const Graph& a, const Graph& b) {
  auto is_same = [&](const Node& x, const Node& y) {
    bool is_leaf = a.info(x).is(kLeaf);  // the types of other nodes follow
    return x.op == y.op && x.in == y.in && x.attrs == y.attrs && (!is_leaf || x.out == y.out);
  };
  if (a.nodes().size() != b.nodes().size()) return false;
  for (uint32_t i = 0; i < a.nodes().size(); i++)
    if (!is_same(a.node(i), b.node(i))) return false;
  return true;
}

static bool same_outputs(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.outputs(), b.outputs(), [](const GraphOutput& x, const GraphOutput& y) {
    return x.name == y.name && x.value == y.value;
  });
}

static bool same_ranges(const Graph& a, const Graph& b) {
  auto is_same = [&](const auto& symbol) { return b.symbol_range(symbol.first) == symbol.second; };
  return a.symbols().size() == b.symbols().size() && std::ranges::all_of(a.symbols(), is_same);
}

static bool same_declared_guards(const Graph& a, const Graph& b) {
  auto declared = [](const Graph& graph) {
    std::vector<const Guard*> guards;
    for (const Guard& guard : graph.guards())
      if (!guard.is_derived) guards.push_back(&guard);
    return guards;
  };
  auto is_same = [](const Guard* x, const Guard* y) { return *x == *y; };
  return std::ranges::equal(declared(a), declared(b), is_same);
}

bool same_structure(const Graph& a, const Graph& b) {
  return same_nodes(a, b) && same_outputs(a, b) && same_ranges(a, b) && same_declared_guards(a, b);
}

size_t structure_hash(const Graph& graph) {
  size_t seed = graph.nodes().size();
  for (const Node& node : graph.nodes())
    seed = hash_mix(hash_mix(seed, static_cast<size_t>(node.op)), node.attrs.hash());
  return seed;
}

}  // namespace rlx
