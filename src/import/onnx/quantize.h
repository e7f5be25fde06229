// SPDX-License-Identifier: Apache-2.0
// What builders of quantised numbers share.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

// A scale or zero point as a scalar if it has one element, which then holds for the whole tensor.
inline Expr per_tensor(Expr x) {
  return x && x.valid() && x.rank() == 1 && x.dim(0).is(1) ? reshape(x, {}) : x;
}

// x as i32, minus its zero point, if it has one: a number, or what broadcasts with x.
inline Expr centred(Expr x, Expr zero) {
  Expr wide = cast(x, DType::kI32);
  return zero ? wide - cast(per_tensor(zero), DType::kI32) : wide;
}

}  // namespace rlx::onnx
