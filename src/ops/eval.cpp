// SPDX-License-Identifier: Apache-2.0
#include "ops/eval.h"

namespace rlx {

int64_t Operand::count() const {
  return *element_count(std::span<const int64_t>(dims));
}

Result<Dims> EvalArgs::dims(std::string_view attr) const {
  Dims sizes_now;
  for (const Dim& dim : attrs.dims(attr)) sizes_now.push_back(RLX_TRY(evaluate(dim, sizes)));
  return sizes_now;
}

Status EvalArgs::fail(Code code, const std::string& message) const {
  return Status(code, format("{}{}: {}", info.name, where.empty() ? "" : format(" '{}'", where), message))
      .with("op", info.name)
      .with("value", where);
}

Dims dense_strides(std::span<const int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

Dims broadcast_strides(std::span<const int64_t> dims, std::span<const int64_t> target) {
  Dims dense = dense_strides(dims), strides(target.size());
  for (size_t i = 0; i < dims.size(); i++)
    if (dims[i] != 1) strides[target.size() - dims.size() + i] = dense[i];
  return strides;
}

}  // namespace rlx
