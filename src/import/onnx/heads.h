// SPDX-License-Identifier: Apache-2.0
// The heads of attention: ONNX has them side by side in the last axis, or as an axis of their own.
#pragma once

#include "ops/expr.h"

namespace rlx::onnx {

// [B, S, N * D] as [B, N, S, D]; any other rank stays.
inline Expr split_heads(Expr x, int64_t heads) {
  if (!x.valid() || x.rank() != 3) return x;
  const Dim& width = x.dim(2);
  if (width.is_literal() && width.literal() % heads != 0)
    return x.builder().fail(Status(Code::kShape, format("a width of {} is not one of {} heads", width, heads)));
  return transpose(reshape(x, {x.dim(0), x.dim(1), Dim(heads), Dim(-1)}), {0, 2, 1, 3});
}

// [B, N, S, D] as [B, S, N * D]; any other rank stays.
inline Expr merge_heads(Expr x) {
  if (!x.valid() || x.rank() != 4) return x;
  Expr y = transpose(x, {0, 2, 1, 3});
  return reshape(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
}

}  // namespace rlx::onnx
