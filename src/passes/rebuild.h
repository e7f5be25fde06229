// SPDX-License-Identifier: Apache-2.0
// Copying a graph node by node into a new one, for passes that leave most of it as it is. Types travel with the copies.
// Invariant: inputs, params, symbols and guards arrive in their order before any other node is asked for.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace rlx {

class Rebuild {
 public:
  explicit Rebuild(const Graph& from);  // copies symbols, leaves and guards
  const Status& status() const { return status_; }

  bool is_done(uint32_t node) const { return !map_[node].empty(); }
  Value mapped(Value value) const { return present(value) ? map_[value.node][value.output] : value; }
  void set(uint32_t node, std::vector<Value> values) { map_[node] = std::move(values); }
  void copy(uint32_t index);  // with its inputs as mapped
  Result<Graph> finish();     // adds the outputs
  Graph& graph() { return to_; }

 private:
  const Graph& from_;
  Graph to_;
  std::vector<std::vector<Value>> map_;  // [node][output]; empty: not there yet
  Status status_;
};

}  // namespace rlx
