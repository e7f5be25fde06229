// SPDX-License-Identifier: Apache-2.0
// Graphs with bodies, made ready for the passes.
#pragma once

#include "ir/graph.h"

namespace rlx {

// Params that only bodies read become params of the graph too, so that users can set them.
Result<Graph> with_body_params(const Graph& given);

// The graph as passes want it: it declares the params that its bodies read, and the bodies, at every level, declare
// only symbols that they use and have inputs with names of their own.
Result<Graph> ready_for_passes(const Graph& given);

}  // namespace rlx
