// SPDX-License-Identifier: Apache-2.0
// Samples of ops: inputs, attributes and the expected results from an independent source. They are in tests/samples:
// NumPy makes *.golden (golden.py there describes the text). *.rlx is a graph as text with its runs in comments above
// it, for ops that a single call cannot show: leaves and control flow.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ops/interpret.h"

namespace rlx::test {

// An expected result: floats of any width in f64, complex numbers in c128, all others in their dtype.
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
  std::vector<Tensor> in;  // a Tensor that tests false is an absent input
  std::map<std::string, Tensor> params;
  std::vector<Expected> out;
  std::string error;  // "RLX_E_RANGE" in place of results
};

// All samples, in the order of files and lines. For a file that cannot be read there is a sample with the error.
const std::vector<Sample>& all_samples();
std::vector<const Sample*> samples_of(std::string_view op);

// The graph: inputs "in0".., outputs "out0"..; block-quantised inputs are params.
Result<Graph> graph_of(const Sample& sample, const OpTable& table = op_table());
// The one op on inputs of other sizes: every axis of this size has the dim in its place.
Result<Graph> graph_of(const Sample& sample, int64_t size, const Dim& dim);
// Runs the graph on these inputs, which may differ from the sample's own.
Result<std::vector<Tensor>> run(const Sample& sample, const Graph& graph, std::span<const Tensor> in, EvalMode mode);

}  // namespace rlx::test
