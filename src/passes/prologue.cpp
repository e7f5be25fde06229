// SPDX-License-Identifier: Apache-2.0
#include "passes/prologue.h"

#include <unordered_map>

namespace rlx {

namespace {

// Where a param stands among those of the program. A body's have the names of those around it.
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

// Copies what a value depends on, inputs before readers.
class Cone {
 public:
  Cone(const Graph& from, const Indices& params) : from_(from), params_(params), to_("", &from.table()) {}

  Result<Piece> take(Value value) {
    std::vector<uint32_t> waiting{value.node};
    while (!waiting.empty()) {
      uint32_t node = waiting.back();
      size_t before = waiting.size();
      if (!map_.contains(node))
        for (Value input : from_.node(node).in)
          if (present(input) && !map_.contains(input.node)) waiting.push_back(input.node);
      if (waiting.size() > before) continue;  // its inputs first
      waiting.pop_back();
      if (!map_.contains(node)) map_[node] = RLX_TRY(copy(node)).node;
    }
    RLX_TRY(to_.add_output("value", mapped(value)));
    piece_.is_leaf = from_.info(from_.node(value)).is(kLeaf);
    piece_.body = std::make_shared<const Graph>(std::move(to_));
    return std::move(piece_);
  }

 private:
  Value mapped(Value value) const { return present(value) ? Value{map_.at(value.node), value.output} : value; }

  Result<Value> copy(uint32_t index) {
    const Node& node = from_.node(index);
    if (node.op == Op::kParam) {
      piece_.params.push_back(params_.at(from_, index));
      return to_.add_param(from_.leaf_name(index), node.out[0].dtype, node.out[0].dims);
    }
    std::vector<Value> in;
    for (Value input : node.in) in.push_back(mapped(input));
    return to_.add(from_.info(node), in, node.attrs, node.name);
  }

  const Graph& from_;
  const Indices& params_;
  Graph to_;
  Piece piece_;
  std::unordered_map<uint32_t, uint32_t> map_;
};

}  // namespace

// A param or constant that is read as it is: nothing is computed, and nothing kept under what computes it.
static Piece leaf_piece(const Resident& resident, const Indices& params) {
  const Graph& graph = resident.scope->graph;
  Piece piece{.is_leaf = true};
  if (graph.node(resident.value).op == Op::kParam) piece.params.push_back(params.at(graph, resident.value.node));
  return piece;
}

Result<std::vector<Piece>> split_prologue(const Lowered& lowered) {
  Indices params(lowered.graph);
  std::vector<Piece> pieces;
  pieces.reserve(lowered.residents.size());
  for (const Resident& resident : lowered.residents) {
    const Graph& scope = resident.scope->graph;
    bool is_plain = !resident.kernel && scope.info(scope.node(resident.value)).is(kLeaf);
    pieces.push_back(is_plain ? leaf_piece(resident, params) : RLX_TRY(Cone(scope, params).take(resident.value)));
  }
  return pieces;
}

}  // namespace rlx
