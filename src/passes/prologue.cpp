// SPDX-License-Identifier: Apache-2.0
#include "passes/prologue.h"

#include <string_view>
#include <unordered_map>

namespace rlx {

namespace {

using Indices = std::unordered_map<std::string_view, uint32_t>;  // of the program's params, by name

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
      piece_.params.push_back(params_.at(from_.leaf_name(index)));
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
  if (graph.node(resident.value).op == Op::kParam)
    piece.params.push_back(params.at(graph.leaf_name(resident.value.node)));
  return piece;
}

Result<std::vector<Piece>> split_prologue(const Lowered& lowered) {
  const Graph& graph = lowered.graph;
  Indices params;
  for (uint32_t i = 0; i < graph.params().size(); i++) params.emplace(graph.leaf_name(graph.params()[i]), i);
  std::vector<Piece> pieces;
  for (const Resident& resident : lowered.residents) {
    const Graph& scope = resident.scope->graph;
    bool is_plain = !resident.kernel && scope.info(scope.node(resident.value)).is(kLeaf);
    pieces.push_back(is_plain ? leaf_piece(resident, params) : RLX_TRY(Cone(scope, params).take(resident.value)));
  }
  return pieces;
}

}  // namespace rlx
