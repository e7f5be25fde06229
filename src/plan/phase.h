// SPDX-License-Identifier: Apache-2.0
// When a value is computed: when params are set, when sizes change, or in every run.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace rlx {

enum class Phase : uint8_t {
  kResident,  // depends on params and constants only
  kSized,     // on these and on sizes
  kRun,       // on inputs
};

std::vector<Phase> phases_of(const Graph& graph);  // by node

// The param leaves in the sub-graphs of a node, at every level: their names are global to the program.
struct BodyParam {
  std::string name;
  ValueType type;
};
std::vector<BodyParam> body_params(const Node& node);

// Whether a value depends on params and constants only: the question of one node, asked without an analysis.
bool is_resident(const Graph& graph, Value value);

// Literal attributes and outputs: the node computes the same at all sizes.
bool is_size_free(const Node& node);

}  // namespace rlx
