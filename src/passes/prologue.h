// SPDX-License-Identifier: Apache-2.0
// The prologue: for every resident value, the graph that computes it from params and constants, and the graph that
// packs it. They read no size. Equal graphs, as in repeated layers, are one object.
#pragma once

#include <memory>
#include <vector>

#include "plan/plan.h"

namespace rlx {

struct Piece {
  // From the params that it reads, as inputs in this order, to one output; null for a param or constant that is dense.
  std::shared_ptr<const Graph> body;
  std::shared_ptr<const Graph> pack;  // from that output to the form that is read; null: the value is read dense
  std::vector<uint32_t> params;       // the inputs of the body: indices among the params of the program
  bool is_leaf = false;               // a param or constant itself: nothing to compute
};

Result<std::vector<Piece>> split_prologue(const Lowered& lowered);

}  // namespace rlx
