// SPDX-License-Identifier: Apache-2.0
// The softmax of older nodes, of ai.onnx and com.microsoft.
#pragma once

#include <string_view>

#include "import/onnx/call.h"

namespace rlx::onnx {

// `op` (softmax or log_softmax) over all axes from `axis` on together, which is what Softmax meant before opset 13.
Expr softmax_from_axis(Call& call, std::string_view op, Expr x, int64_t axis);

}  // namespace rlx::onnx
