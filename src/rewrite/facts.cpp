// SPDX-License-Identifier: Apache-2.0
#include "rewrite/facts.h"

#include <algorithm>
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

// ---- integer ranges ----

static Interval add(Interval a, Interval b) {
  auto sum = [](int64_t x, int64_t y) {
    int64_t total = x + y;  // both within 2^62
    return std::clamp(total, -Interval::kUnbounded, Interval::kUnbounded);
  };
  return {sum(a.lo, b.lo), sum(a.hi, b.hi)};
}

static std::optional<Interval> constant_range(const Tensor& tensor) {
  if (!is_integer(tensor.dtype()) || tensor.count() == 0 || tensor.count() > 4096) return std::nullopt;
  Interval range{Interval::kUnbounded, -Interval::kUnbounded};
  for (int64_t i = 0; i < tensor.count(); i++) {
    int64_t element = std::clamp(element_as_i64(tensor, i), -Interval::kUnbounded, Interval::kUnbounded);
    range = {std::min(range.lo, element), std::max(range.hi, element)};
  }
  return range;
}

std::optional<Interval> integer_range(const Graph& graph, Value value) {
  const Node& node = graph.node(value);
  auto of = [&](size_t i) { return integer_range(graph, node.in[i]); };
  switch (node.op) {
    case Op::kConstant: return constant_range(node.attrs.tensor("value"));
    case Op::kReshape:
    case Op::kBroadcastTo:
    case Op::kTranspose:
    case Op::kSlice: return of(0);
    case Op::kIota: {
      const Dim& size = node.out[0].dims[static_cast<size_t>(
          node.attrs.i64("axis") + (node.attrs.i64("axis") < 0 ? static_cast<int64_t>(node.out[0].rank()) : 0))];
      return Interval{0, std::max<int64_t>(0, graph.range(size).hi - 1)};
    }
    case Op::kDimSize: {
      const auto& dims = graph.type(node.in[0]).dims;
      int64_t axis = node.attrs.i64("axis");
      return graph.range(dims[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(dims.size()) : axis)]);
    }
    case Op::kCast: {
      // Only between the index types, where nothing wraps that a size can reach.
      bool index_types = dtypes::X.has(node.out[0].dtype) && dtypes::X.has(graph.type(node.in[0]).dtype);
      return index_types ? of(0) : std::nullopt;
    }
    case Op::kAdd: {
      auto a = of(0), b = of(1);
      return a && b ? std::optional(add(*a, *b)) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace rlx
