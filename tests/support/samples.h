// SPDX-License-Identifier: Apache-2.0
// Samples of ops: inputs, attributes and the results that a second source gives for them. They stand in tests/samples:
// *.golden is made by NumPy (golden.py there describes the text), *.rlx is a program in the text form of graphs with
// its runs in the comments above it, for the rows that no single call can show: leaves and control flow.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/interpret.h"

namespace rlx::test {

// A result as the second source has it: floats of any width in f64, complex numbers in c128, all others as they are.
struct Expected {
  DType dtype;  // of the op's output
  Tensor value;
};

struct Sample {
  std::string where;  // "movement.golden:12"
  std::string op;
  std::string attrs;
  std::string program;  // the graph's text; empty: the one op on its inputs
  Bounds bounds = Bounds::kError;
  std::vector<Tensor> in;  // one that is no tensor: absent
  std::map<std::string, Tensor> params;
  std::vector<Expected> out;
  std::string error;  // "RLX_E_RANGE" in place of results
};

// All samples, in the order of files and lines. A file that cannot be read is a sample whose error says so.
const std::vector<Sample>& all_samples();
std::vector<const Sample*> samples_of(std::string_view op);

// The graph: inputs "in0".., outputs "out0"..; block-quantised inputs are params.
Result<Graph> graph_of(const Sample& sample, const OpTable& table = op_table());
// Runs it on these inputs, which may be other ones than the sample's own.
Result<std::vector<Tensor>> run(const Sample& sample, const Graph& graph, std::span<const Tensor> in, EvalMode mode);

}  // namespace rlx::test
