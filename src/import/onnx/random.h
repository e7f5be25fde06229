// SPDX-License-Identifier: Apache-2.0
// Key and counter of the ONNX node kinds that draw random numbers: the seed and the place of the node in the graph.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

struct RandomState {
  Expr key, counter;
};

// From the attribute `seed`, which may be absent. Other runtimes draw other numbers.
RandomState random_state(Call& call);

}  // namespace rlx::onnx
