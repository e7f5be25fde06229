// SPDX-License-Identifier: Apache-2.0
// ONNX models (github.com/onnx/onnx, opsets 1 to 28 of ai.onnx) as graphs. Sizes keep the names and expressions of the
// model. Shape arithmetic is evaluated at import and leaves no op.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "import/source.h"
#include "ir/graph.h"

namespace rlx {

struct Imported {
  Graph graph;
  NamedTensors weights;  // the tensors of the graph's params, views of the source where its bytes are aligned
  std::vector<std::pair<std::string, std::string>> metadata;
  // With interface_only: inputs of no known rank; in the graph they are scalars.
  std::vector<std::string> open_ranks = {};
};

// Initializers with float, 8-bit or block-quantised elements become params, as the options say. RLX_E_DATA for a
// damaged file, RLX_E_UNSUPPORTED naming every node kind without a counterpart, RLX_E_DENIED for external data outside
// the model's folder. If the only failures are inputs whose values must be known, the status names them
// (kStaticInputs).
Result<Imported> import_onnx(const Source& source, const ImportOptions& options);

// Whether the bytes look like an ONNX model: for finding a format by the first bytes.
bool is_onnx(std::span<const std::byte> bytes);

}  // namespace rlx
