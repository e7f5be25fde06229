// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/stretch.h"

#include <algorithm>

#include "ir/outputs.h"

namespace rlx::onnx {

Dim common_size(Builder& builder, const Dim& a, const Dim& b, std::string_view where) {
  if (a == b || b.is(1) || (a.is_literal() && b.is_literal())) return a.is(1) ? b : a;
  if (a.is(1)) return b;
  Guard fits{Guard::kLessEqual, 1, is_equal(a, 1) + is_equal(b, 1) + is_equal(a, b), std::string(where)};
  if (Status status = builder.graph().declare_guard(fits); !status.ok()) builder.fail(std::move(status));
  if (a.is_literal()) return a;
  if (b.is_literal()) return b;
  return max(a, b) * min(1, a) * min(1, b);  // they are equal, or one is 1; 0 stays 0
}

Expr stretched(Expr x, std::span<const Dim> dims) {
  if (!x.valid() || x.rank() > dims.size()) return x;
  Builder& b = x.builder();
  for (size_t i = 0; i < x.rank(); i++) {
    auto axis = static_cast<int64_t>(i);
    Dim own = x.dim(axis), wanted = dims[dims.size() - x.rank() + i];
    if (own == wanted || own.is_literal()) continue;
    Expr moves = b.size(negated(is_equal(own, 1)), DType::kI64);
    x = gather(x, iota(b, {wanted}, 0, DType::kI64) * moves, axis);
    if (!x.valid()) break;
  }
  return x;
}

// How many of the last axes do not broadcast; nullopt: none does.
static std::optional<size_t> apart(const OpInfo& info) {
  if (info.op() == Op::kMatmul) return 2;
  return info.is(kElementwise) ? std::optional<size_t>(0) : std::nullopt;
}

static std::vector<Dim> common_dims(Builder& builder, std::span<const Value> in, size_t apart, std::string_view where) {
  std::vector<Dim> common;  // the last axis that broadcasts first
  for (Value value : in) {
    if (!present(value)) continue;
    std::vector<Dim> dims = builder.graph().type(value).dims;
    for (size_t i = 0; i + apart < dims.size(); i++) {
      const Dim& own = dims[dims.size() - apart - 1 - i];
      if (i == common.size())
        common.push_back(own);
      else
        common[i] = common_size(builder, common[i], own, where);
    }
  }
  std::reverse(common.begin(), common.end());
  return common;
}

static Result<std::vector<Value>> add_stretched(Builder& builder, const OpInfo& info, std::span<const Value> in,
                                                Attrs attrs, std::string name) {
  Graph& graph = builder.graph();
  std::vector<Value> operands(in.begin(), in.end());
  if (auto last = apart(info); last && in.size() > 1) {
    std::vector<Dim> common = common_dims(builder, in, *last, info.name);
    for (Value& value : operands) {
      if (!present(value) || graph.type(value).rank() < *last) continue;
      std::vector<Dim> own = graph.type(value).dims, dims = common;
      dims.insert(dims.end(), own.end() - static_cast<int64_t>(*last), own.end());
      value = stretched(builder.wrap(value), dims).value();
    }
    RLX_TRY(Status(builder.status()));
  }
  return outputs_of(graph, RLX_TRY(graph.add(info, operands, std::move(attrs), std::move(name))).node);
}

void stretch_operands(Builder& builder) {
  builder.set_add([&builder](const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name) {
    return add_stretched(builder, info, in, std::move(attrs), std::move(name));
  });
}

}  // namespace rlx::onnx
