// SPDX-License-Identifier: Apache-2.0
#include "ir/structure.h"

#include <algorithm>
#include <unordered_set>

#include "base/hash.h"
#include "ir/graph.h"
#include "ir/symbols.h"

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

// Whether the symbols that `of` uses have the same ranges in the graph.
static bool has_ranges(const Graph& graph, const Graph& of) {
  std::unordered_set<std::string> others;  // of another range
  for (const auto& [name, range] : of.symbols())
    if (!graph.has_symbol(name) || graph.symbol_range(name) != range) others.insert(name);
  bool is_used = false;
  if (!others.empty()) visit_symbols(of, [&](const std::string& name) { is_used |= others.contains(name); });
  return !is_used;
}

// Whether a run of the graph checks what the guards of `of` say, in whatever form. Those that are derived follow from
// nodes too.
static bool has_guards(const Graph& graph, const Graph& of) {
  auto is_checked = [&](const Guard& guard) {
    return guard.is_derived || graph.implies(guard.relation, guard.a, guard.b);
  };
  return std::ranges::all_of(of.guards(), is_checked);
}

bool same_structure(const Graph& a, const Graph& b) {
  return same_nodes(a, b) && same_outputs(a, b) && has_ranges(a, b) && has_ranges(b, a) && has_guards(a, b) &&
         has_guards(b, a);
}

size_t structure_hash(const Graph& graph) {
  size_t seed = graph.nodes().size();
  for (const Node& node : graph.nodes()) {
    seed = hash_mix(hash_mix(seed, static_cast<size_t>(node.op)), node.attrs.hash());
    for (Value in : node.in) seed = hash_mix(seed, key_of(in));
  }
  for (const GraphOutput& output : graph.outputs()) seed = hash_mix(seed, key_of(output.value));
  return seed;
}

}  // namespace rlx
