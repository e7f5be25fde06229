// SPDX-License-Identifier: Apache-2.0
#include "passes/prologue.h"

#include <algorithm>
#include <map>

namespace rlx {

namespace {

// Copies what a value depends on, inputs before readers.
class Cone {
 public:
  explicit Cone(const Graph& from) : from_(from), to_("", &from.table()) {}

  Result<Piece> take(Value value) {
    Piece piece;
    Value root = RLX_TRY(copy(value, piece));
    RLX_TRY(to_.add_output("value", root));
    piece.is_leaf = from_.info(from_.node(value)).is(kLeaf);
    piece.body = std::make_shared<const Graph>(std::move(to_));
    return piece;
  }

 private:
  Result<Value> copy(Value value, Piece& piece) {
    if (!present(value)) return value;
    if (auto done = map_.find(value.node); done != map_.end()) return Value{done->second, value.output};
    const Node& node = from_.node(value);
    Value made;
    if (node.op == Op::kParam) {
      made = RLX_TRY(to_.add_param(from_.leaf_name(value.node), node.out[0].dtype, node.out[0].dims));
      auto found = std::find(from_.params().begin(), from_.params().end(), value.node);
      piece.params.push_back(static_cast<uint32_t>(found - from_.params().begin()));
    } else {
      std::vector<Value> in;
      for (Value input : node.in) in.push_back(RLX_TRY(copy(input, piece)));
      made = RLX_TRY(to_.add(from_.info(node), in, node.attrs, node.name));
    }
    map_[value.node] = made.node;
    return Value{made.node, value.output};
  }

  const Graph& from_;
  Graph to_;
  std::map<uint32_t, uint32_t> map_;
};

}  // namespace

Result<std::vector<Piece>> split_prologue(const Lowered& lowered) {
  std::vector<Piece> pieces;
  for (const Resident& resident : lowered.residents)
    pieces.push_back(RLX_TRY(Cone(lowered.graph).take(resident.value)));
  return pieces;
}

}  // namespace rlx
