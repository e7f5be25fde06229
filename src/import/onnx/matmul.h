// SPDX-License-Identifier: Apache-2.0
// The ranks that MatMul and its quantised forms take.
#pragma once

#include "base/function_ref.h"
#include "ops/expr.h"

namespace rlx::onnx {

// `product` of two matrices. A vector on either side is a matrix of one row or column; the result drops that axis.
inline Expr matmul_with_vectors(Expr a, Expr b, FunctionRef<Expr(Expr, Expr)> product) {
  if (!a.valid() || !b.valid()) return a.valid() ? b : a;
  bool row = a.rank() == 1, column = b.rank() == 1;
  Expr y = product(row ? unsqueeze(a, 0) : a, column ? unsqueeze(b, 1) : b);
  if (!y.valid() || !(row || column)) return y;
  std::vector<Dim> dims = y.dims();
  if (row) dims.erase(dims.end() - 2);
  if (column) dims.erase(dims.end() - 1);
  return reshape(y, dims);
}

}  // namespace rlx::onnx
