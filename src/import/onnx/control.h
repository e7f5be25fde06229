// SPDX-License-Identifier: Apache-2.0
// What the node kinds with bodies share: If, Loop and Scan.
#pragma once

#include <algorithm>
#include <vector>

#include "import/onnx/call.h"
#include "import/onnx/importer.h"

namespace rlx::onnx {

inline constexpr int64_t kMaxTrips = 4096;  // that become nodes of their own, when a loop or a batch is unrolled

// A tensor of rank 1, or of rank 0 from a single value.
template <class T>
Tensor literal(Call& call, DType dtype, const std::vector<T>& values, size_t rank) {
  int64_t dims[] = {static_cast<int64_t>(values.size())};
  auto tensor = Tensor::create(dtype, std::span<const int64_t>(dims, rank));
  if (!tensor.ok()) return call.fail(tensor.status()), Tensor();
  std::copy(values.begin(), values.end(), tensor->as<T>());
  return *tensor;
}

// Appends the values that the body reads from the graphs around it to the operands of its node.
void add_captures(Call& call, const BodyGraph& body, std::vector<Expr>& in);

// Which inputs and outputs of a body are its carries: `count` of them, from these positions on. If they are steady, the
// run checks that no trip changes their sizes.
struct Carries {
  size_t count, first_in = 0, first_out = 0;
  bool are_steady = false;
};

// The body of a loop, on inputs of these types. A size of a carry that a trip may change becomes a symbol of the body.
// Other sizes that follow from it may then change too, so the body is built again.
Result<BodyGraph> loop_body(Call& call, const GraphProto& proto, std::vector<ValueType>& types, const Carries& carries);

// The outputs of a body from `first` on, which are stacked or keep their sizes, must have the same ones at every trip.
Status check_rows(const BodyGraph& body, size_t first, const Graph& around);

}  // namespace rlx::onnx
