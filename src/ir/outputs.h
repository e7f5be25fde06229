// SPDX-License-Identifier: Apache-2.0
// The outputs of a node as values.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace rlx {

inline std::vector<Value> outputs_of(const Graph& graph, uint32_t node) {
  std::vector<Value> outputs;
  for (uint32_t i = 0; i < graph.node(node).out.size(); i++) outputs.push_back({node, i});
  return outputs;
}

}  // namespace rlx
