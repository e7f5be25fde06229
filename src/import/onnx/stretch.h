// SPDX-License-Identifier: Apache-2.0
// Broadcasting of sizes that only a run shows to be 1. A graph broadcasts only literals (semantics.md S3), so that no
// step has to ask. Where a run found that this was not enough, the file is imported again with the choice `stretches`.
// Then an operand whose size may be 1 is made as large as the result: it is read at positions that move with those of
// the result, or stay at its only element.
#pragma once

#include "ops/expr.h"

namespace rlx::onnx {

// What two sizes broadcast to where either may be 1; a guard says that they do.
Dim common_size(Builder& builder, const Dim& a, const Dim& b, std::string_view where);
// `x` as large as `dims`, which end in its axes.
Expr stretched(Expr x, std::span<const Dim> dims);
// From now on what the builder adds stretches operands that broadcast with each other.
void stretch_operands(Builder& builder);

}  // namespace rlx::onnx
