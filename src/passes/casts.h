// SPDX-License-Identifier: Apache-2.0
// The casts that a pass inserts into a graph; each is inserted once.
#pragma once

#include <array>
#include <map>
#include <utility>

#include "ir/graph.h"

namespace rlx {

class Casts {
 public:
  // The value itself if it has the dtype.
  Result<Value> cast(Graph& graph, Value value, DType dtype) {
    if (graph.type(value).dtype == dtype) return value;
    auto [known, is_new] = made_.try_emplace({value, dtype});
    if (is_new) known->second = RLX_TRY(graph.add(Op::kCast, std::array{value}, {{"to", dtype}}));
    return known->second;
  }

 private:
  std::map<std::pair<Value, DType>, Value> made_;
};

}  // namespace rlx
