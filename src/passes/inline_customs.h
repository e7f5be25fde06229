// SPDX-License-Identifier: Apache-2.0
// Custom ops with bodies, replaced by the nodes of these.
#pragma once

#include "ir/graph.h"

namespace rlx {

// The graph without custom ops that have bodies: the nodes of those bodies, at every level. An op is registered with
// such a graph, so that inference and the pass `inline` see one body at a time. RLX_E_UNSUPPORTED for one of more than
// 2^20 nodes.
Result<Graph> with_bodies_in_place(const Graph& graph);

}  // namespace rlx
