// SPDX-License-Identifier: Apache-2.0
#include "rewrite/facts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "rewrite/affine.h"

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
  if (node.op == Op::kCast && node.out[0].dtype == DType::kBool) {
    auto inner = splat_value(graph, node.in[0]);
    return inner ? std::optional(*inner != 0 ? 1.0 : 0.0) : std::nullopt;
  }
  if (node.op == Op::kCast && is_float(node.out[0].dtype)) {
    auto inner = splat_value(graph, node.in[0]);
    return inner && std::isfinite(*inner) && node.out[0].dtype == DType::kF32
               ? std::optional(static_cast<double>(static_cast<float>(*inner)))
               : std::nullopt;
  }
  return std::nullopt;
}

// ---- integer ranges ----

// Of numbers as large as what stands for an open end, or that no i64 holds, nothing is said.
static std::optional<Interval> constant_range(const Tensor& tensor) {
  if (!is_integer(tensor.dtype()) || tensor.count() == 0 || tensor.count() > 4096) return std::nullopt;
  Interval range{Interval::kUnbounded, -Interval::kUnbounded};
  for (int64_t i = 0; i < tensor.count(); i++) {
    int64_t element = element_as_i64(tensor, i);
    if (element <= -Interval::kUnbounded || element >= Interval::kUnbounded) return std::nullopt;
    if (element < 0 && tensor.dtype() == DType::kU64) return std::nullopt;
    range = {std::min(range.lo, element), std::max(range.hi, element)};
  }
  return range;
}

std::optional<Interval> integer_range(const Graph& graph, Value value) {
  if (auto form = affine_form(graph, value)) return bounds_of(graph, *form, graph.type(value).dims);
  const Node& node = graph.node(value);
  if (node.op == Op::kConstant) return constant_range(node.attrs.tensor("value"));
  bool selects = graph.info(node).is(kView) && node.in.size() == 1 && node.out[0].dtype == graph.type(node.in[0]).dtype;
  return selects ? integer_range(graph, node.in[0]) : std::nullopt;
}

}  // namespace rlx
