// SPDX-License-Identifier: Apache-2.0
#include "rewrite/facts.h"

#include <cmath>
#include <cstring>

namespace rlx {

static std::optional<double> splat_of(const Tensor& tensor) {
  if (tensor.bytes() == 0 || is_block(tensor.dtype()) || is_complex(tensor.dtype())) return std::nullopt;
  size_t unit = static_cast<size_t>(element_bytes(tensor.dtype()));
  if (std::memcmp(tensor.data(), tensor.data() + unit, tensor.bytes() - unit) != 0) return std::nullopt;
  return element_as_f64(tensor, 0);
}

std::optional<double> splat_value(const Graph& graph, Value value) {
  if (!present(value)) return std::nullopt;
  const Node& node = graph.node(value);
  if (node.op == Op::kConstant) return splat_of(node.attrs.tensor("value"));
  if (node.op == Op::kReshape || node.op == Op::kBroadcastTo) return splat_value(graph, node.in[0]);
  if (node.op == Op::kCast && is_float(node.out[0].dtype)) {
    auto inner = splat_value(graph, node.in[0]);
    return inner && std::isfinite(*inner) && node.out[0].dtype == DType::kF32
               ? std::optional(static_cast<double>(static_cast<float>(*inner)))
               : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace rlx
