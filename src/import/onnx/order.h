// SPDX-License-Identifier: Apache-2.0
// The order in which the nodes of a graph are built.
#pragma once

#include <cstdint>
#include <vector>

#include "import/onnx/model.h"

namespace rlx::onnx {

// The nodes of a graph, each after those whose outputs it reads, and otherwise as in the file; nothing if the file has
// such an order. ONNX asks for one, but converters append nodes, and other runtimes sort what they read. In a cycle
// some node stands before what it reads.
std::vector<size_t> sorted_nodes(const GraphProto& graph);

}  // namespace rlx::onnx
