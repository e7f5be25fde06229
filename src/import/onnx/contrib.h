// SPDX-License-Identifier: Apache-2.0
// What the builders of the domain com.microsoft share.
#pragma once

#include "import/onnx/call.h"

namespace rlx::onnx {

// The bits of each number of a packed tensor, from an attribute. Fails for another number than 2, 4 and 8, and returns
// 8 then.
int64_t packed_bits(Call& call, const char* attribute, int64_t fallback);

// How many ones each row of a mask has, as i32; without a mask 0 for each row of `ids`.
Expr ones_of_rows(Expr mask, Expr ids);

}  // namespace rlx::onnx
