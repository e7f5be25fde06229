// SPDX-License-Identifier: Apache-2.0
// The reference decoder of block-quantised types (semantics.md Q1).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/status.h"
#include "base/tensor.h"
#include "ops/eval.h"

namespace rlx {

// `count` elements, a whole number of blocks, each rounded once to f32.
void decode_blocks(DType dtype, const std::byte* blocks, int64_t count, float* out);

// A block-quantised operand as f32.
Result<Tensor> decoded(const Operand& operand);

}  // namespace rlx
