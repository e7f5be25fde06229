// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/e2m1.h"

namespace rlx::onnx {

std::byte e2m1_as_f8(int bits) {
  static constexpr uint8_t kMagnitudes[] = {0, 0x30, 0x38, 0x3C, 0x40, 0x44, 0x48, 0x4C};  // 0, 0.5, 1, ... 6
  return std::byte{static_cast<uint8_t>(kMagnitudes[bits & 7] | ((bits & 8) << 4))};
}

Expr to_e2m1(Call& call, Expr x) {
  if (!x.valid()) return x;
  x = cast(x, x.dtype() == DType::kF64 ? x.dtype() : DType::kF32);
  Expr size = minimum(abs(x), 6);
  Expr step = where(less(size, 2), scalar_like(x, 0.5), where(less(size, 4), scalar_like(x, 1), scalar_like(x, 2)));
  Expr near = call.op("round", {size / step}) * step;
  near = where(less(x, 0), -near, near);
  return call.op("cast", {where(call.op("is_nan", {x}), 0, near)}, {{"to", DType::kF8E4M3}});
}

}  // namespace rlx::onnx
