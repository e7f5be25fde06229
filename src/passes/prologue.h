// SPDX-License-Identifier: Apache-2.0
// The prologue: for every resident value, the graph that computes it from params and constants. It reads no size.
#pragma once

#include <memory>
#include <vector>

#include "plan/plan.h"

namespace rlx {

struct Piece {
  std::shared_ptr<const Graph> body;  // has the params that it reads, and one output; null for a leaf read as it is
  std::vector<uint32_t> params;       // their indices among the params of the program
  bool is_leaf = false;               // a param or constant itself: nothing is computed
};

Result<std::vector<Piece>> split_prologue(const Lowered& lowered);

}  // namespace rlx
