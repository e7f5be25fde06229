// SPDX-License-Identifier: Apache-2.0
// What inference checks of every node. infer_node of ir/graph.h calls it; a function of a row may, to name more.
#pragma once

#include "ir/graph.h"

namespace rlx {

// The ranks and the sizes of the outputs.
Status check_results(InferArgs& args);

}  // namespace rlx
