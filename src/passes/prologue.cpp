// SPDX-License-Identifier: Apache-2.0
#include "passes/prologue.h"

#include <unordered_map>
#include <unordered_set>

#include "passes/graph_copy.h"

namespace rlx {

namespace {

// The params that a value depends on, in a fixed order.
std::vector<uint32_t> params_below(const Graph& graph, Value value) {
  std::vector<uint32_t> found, waiting{value.node};
  std::unordered_set<uint32_t> seen{value.node};
  while (!waiting.empty()) {
    uint32_t node = waiting.back();
    waiting.pop_back();
    if (graph.node(node).op == Op::kParam) found.push_back(node);
    for (Value input : graph.node(node).in)
      if (present(input) && seen.insert(input.node).second) waiting.push_back(input.node);
  }
  return found;
}

// The index of a param among those of the program. A param of a body has the name of one around it.
class Indices {
 public:
  explicit Indices(const Graph& graph) : graph_(graph), index_(graph.nodes().size()) {
    for (uint32_t i = 0; i < graph.params().size(); i++) index_[graph.params()[i]] = i;
  }
  uint32_t at(const Graph& scope, uint32_t node) const {
    return index_[&scope == &graph_ ? node : graph_.find_leaf(scope.leaf_name(node))->node];
  }

 private:
  const Graph& graph_;
  std::vector<uint32_t> index_;  // by node
};

// Keeps equal graphs once.
class Shared {
 public:
  std::shared_ptr<const Graph> one_of(Graph made) {
    size_t hash = structure_hash(made);
    auto [first, last] = graphs_.equal_range(hash);
    for (auto it = first; it != last; ++it)
      if (same_structure(*it->second, made)) return it->second;
    return graphs_.emplace(hash, std::make_shared<const Graph>(std::move(made)))->second;
  }

 private:
  std::unordered_multimap<size_t, std::shared_ptr<const Graph>> graphs_;
};

}  // namespace

static Graph prologue_graph(const OpTable& table) {
  Graph graph("", &table);
  graph.set_prologue();
  return graph;
}

// A copy of the graph that computes the value, with inputs in place of params.
static Result<Graph> body_of(const Resident& resident, const Indices& indices, std::vector<uint32_t>& params) {
  const Graph& scope = resident.scope->graph;
  Graph body = prologue_graph(scope.table());
  GraphCopy copy(scope, body);
  for (uint32_t param : params_below(scope, resident.value)) {
    const ValueType& type = scope.node(param).out[0];
    copy.set({param, 0}, RLX_TRY(body.add_input(std::to_string(params.size()), type.dtype, type.dims)));
    params.push_back(indices.at(scope, param));
  }
  RLX_TRY(body.add_output("value", RLX_TRY(copy.copy_cone(resident.value))));
  return body;
}

static Result<Graph> pack_of(const Resident& resident) {
  const Graph& scope = resident.scope->graph;
  const ValueType& type = scope.type(resident.value);
  Graph graph = prologue_graph(scope.table());
  Value x = RLX_TRY(graph.add_input("x", type.dtype, type.dims));
  RLX_TRY(graph.add_output("form", RLX_TRY(graph.add(Op::kPrepack, {&x, 1}, resident.packing->attrs()))));
  return graph;
}

// A param or constant that is read unchanged: there is nothing to compute or to keep.
static Piece leaf_piece(const Resident& resident, const Indices& indices) {
  const Graph& graph = resident.scope->graph;
  Piece piece{.is_leaf = true};
  if (graph.node(resident.value).op == Op::kParam) piece.params.push_back(indices.at(graph, resident.value.node));
  return piece;
}

Result<std::vector<Piece>> split_prologue(const Lowered& lowered) {
  Indices indices(lowered.graph);
  Shared shared;
  std::vector<Piece> pieces;
  pieces.reserve(lowered.residents.size());
  for (const Resident& resident : lowered.residents) {
    const Graph& scope = resident.scope->graph;
    bool is_leaf = scope.info(scope.node(resident.value)).is(kLeaf);
    if (is_leaf && !resident.packing) {
      pieces.push_back(leaf_piece(resident, indices));
      continue;
    }
    Piece piece{.is_leaf = is_leaf};
    piece.body = shared.one_of(RLX_TRY(body_of(resident, indices, piece.params)));
    if (resident.packing) piece.pack = shared.one_of(RLX_TRY(pack_of(resident)));
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace rlx
