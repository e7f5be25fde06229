// SPDX-License-Identifier: Apache-2.0
// Lists of numbers as tensors of rank 1.
#pragma once

#include <algorithm>
#include <span>

#include "base/tensor.h"

namespace rlx::onnx {

// A copy of the items, which are elements of this dtype.
template <class T>
Result<Tensor> list_tensor(DType dtype, std::span<const T> items) {
  auto count = static_cast<int64_t>(items.size());
  Tensor tensor = RLX_TRY(Tensor::create(dtype, std::span<const int64_t>(&count, 1)));
  std::copy(items.begin(), items.end(), tensor.template as<T>());
  return tensor;
}

}  // namespace rlx::onnx
