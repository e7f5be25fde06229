// SPDX-License-Identifier: Apache-2.0
// The check of a node's results. infer_node (ir/graph.h) makes it for every node; the infer function of custom ops
// makes it before, to name the op in the failure.
#pragma once

#include "ir/graph.h"

namespace rlx {

// The ranks and the sizes of the outputs.
Status check_results(InferArgs& args);

}  // namespace rlx
