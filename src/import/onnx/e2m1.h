// SPDX-License-Identifier: Apache-2.0
// ONNX's float4e2m1: the numbers 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives. There is no dtype for it. As int4 lies
// in i8, it lies in f8e4m3, which has all these numbers, with `OnnxValue::bits` 4.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

constexpr bool is_e2m1(DType dtype, int bits) {
  return dtype == DType::kF8E4M3 && bits == 4;
}
std::byte e2m1_as_f8(int bits);    // the low four bits
Expr to_e2m1(Call& call, Expr x);  // rounded to the nearest, to even if there are two; NaN becomes 0

}  // namespace rlx::onnx
