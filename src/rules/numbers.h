// SPDX-License-Identifier: Apache-2.0
// Questions about constants that rules compute in double. They matter because the dtype of a value holds fewer numbers.
#pragma once

#include <cmath>

#include "base/dtype.h"
#include "base/tensor.h"

namespace rlx {

inline double rounded_to(DType dtype, double value) {
  auto tensor = scalar_tensor(dtype, value);
  return tensor.ok() ? element_as_f64(*tensor, 0) : NAN;
}

inline double smallest_normal(DType dtype) {
  int exponent = dtype == DType::kF16 ? -14 : dtype == DType::kF64 ? -1022 : -126;
  return std::ldexp(1.0, exponent);
}

// Whether the dtype holds the number with its full precision: neither 0, inf, NaN nor subnormal.
inline bool is_normal(DType dtype, double value) {
  double held = rounded_to(dtype, value);
  return std::isfinite(held) && std::fabs(held) >= smallest_normal(dtype);
}

// A factor that may move out of an f32 product or across another factor (semantics.md R2).
inline bool is_moderate(double value) {
  return std::fabs(value) >= std::ldexp(1.0, -20) && std::fabs(value) <= std::ldexp(1.0, 20);
}

}  // namespace rlx
