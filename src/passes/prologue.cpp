// SPDX-License-Identifier: Apache-2.0
#include "passes/prologue.h"

#include <unordered_map>

#include "passes/graph_copy.h"

namespace rlx {

namespace {

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

}  // namespace

static Result<Piece> computed_piece(const Resident& resident, const Indices& params) {
  const Graph& scope = resident.scope->graph;
  Graph body("", &scope.table());
  RLX_TRY(body.add_output("value", RLX_TRY(GraphCopy(scope, body).copy_cone(resident.value))));
  Piece piece{.is_leaf = scope.info(scope.node(resident.value)).is(kLeaf)};
  for (uint32_t node : body.params()) piece.params.push_back(params.at(body, node));
  piece.body = std::make_shared<const Graph>(std::move(body));
  return piece;
}

// A param or constant that is read as it is: there is nothing to compute or to keep.
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
    pieces.push_back(is_plain ? leaf_piece(resident, params) : RLX_TRY(computed_piece(resident, params)));
  }
  return pieces;
}

}  // namespace rlx
