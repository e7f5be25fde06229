// SPDX-License-Identifier: Apache-2.0
// What nodes of ai.onnx and com.microsoft share that have a softmax or a product.
#pragma once

#include <functional>
#include <string_view>

#include "import/onnx/call.h"

namespace rlx::onnx {

// `op` (softmax or log_softmax) over all axes from `axis` on together, which is what Softmax meant before opset 13.
Expr softmax_from_axis(Call& call, std::string_view op, Expr x, int64_t axis);

// `product` of two matrices. A vector on either side is a matrix of one row or column; the result drops that axis.
Expr with_vectors(Expr a, Expr b, const std::function<Expr(Expr, Expr)>& product);

}  // namespace rlx::onnx
