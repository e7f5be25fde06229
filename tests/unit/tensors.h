// SPDX-License-Identifier: Apache-2.0
// Tensors with plain contents, for tests.
#pragma once

#include <algorithm>
#include <array>

#include "base/tensor.h"

namespace rlx::testing_programs {

// A bool of rank 0.
inline Tensor truth(bool value) {
  Tensor tensor = *Tensor::create(DType::kBool, std::span<const int64_t>());
  *reinterpret_cast<uint8_t*>(tensor.data()) = value;
  return tensor;
}

// One index, in a list.
inline Tensor index_of(int64_t value) {
  Tensor tensor = *Tensor::create(DType::kI64, std::array<int64_t, 1>{1});
  *tensor.as<int64_t>() = value;
  return tensor;
}

inline Tensor row(std::initializer_list<float> values) {
  Tensor tensor = *Tensor::create(DType::kF32, std::array{static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

inline Tensor filled(const std::vector<int64_t>& dims, float value) {
  Tensor tensor = *Tensor::create(DType::kF32, dims);
  std::fill_n(tensor.as<float>(), tensor.count(), value);
  return tensor;
}

// 0, 1, 2 ...
inline Tensor counting(std::initializer_list<int64_t> dims) {
  Tensor tensor = *Tensor::create(DType::kF32, std::span<const int64_t>(dims.begin(), dims.size()));
  for (int64_t i = 0; i < tensor.count(); i++) tensor.as<float>()[i] = static_cast<float>(i);
  return tensor;
}

}  // namespace rlx::testing_programs
