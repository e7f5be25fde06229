// SPDX-License-Identifier: Apache-2.0
// The prologue: the graphs that compute the resident values from params and constants, and those that pack them. They
// read no size. Equal graphs, as in repeated layers, are one object.
#pragma once

#include <memory>
#include <vector>

#include "base/inlined_vector.h"
#include "plan/plan.h"

namespace rlx {

// Residents that are computed together: one, or all that share so much that apart they would take far longer.
struct Piece {
  InlinedVector<uint32_t, 2> residents;  // indices, rising
  // Computes the residents, an output each, from the params that it reads, which are its inputs in this order. Null for
  // a param or constant that is read dense.
  std::shared_ptr<const Graph> body;
  InlinedVector<uint32_t, 2> params;  // the inputs of the body: indices among the params of the program
  InlinedVector<std::shared_ptr<const Graph>, 1>
      packs;             // by resident, from the output to its form; null: it is read dense
  bool is_leaf = false;  // a param or constant itself: nothing to compute

  bool is_plain() const { return is_leaf && !packs[0]; }  // read as it is
};

Result<std::vector<Piece>> split_prologue(const LoweredGraph& lowered);

}  // namespace rlx
