// SPDX-License-Identifier: Apache-2.0
// Composite contractions and gates.
#include "ops/expr.h"
#include "ops/fused_act.h"

namespace rlx {

// Checks the inner sizes before the product does, so that the message names the inputs of this op.
static bool require_inner(Expr x, const Dim& of_x, const Dim& of_w) {
  if (!of_x.is_literal() || !of_w.is_literal() || of_x == of_w) return true;
  x.builder().fail(Status(Code::kShape, format("the inner sizes of x and w: {} is not {}", of_w, of_x))
                       .with("expected", of_x.text())
                       .with("got", of_w.text()));
  return false;
}

// Leading dims of x are merged: one product of matrices, whatever the rank.
Outputs decompose_linear(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0], w = in[1], bias = in[2];
  if (w.rank() != 2) return {x.builder().fail(wrong_rank("w", "2", w.rank()))};
  if (x.rank() == 0) return {x.builder().fail(wrong_rank("x", "1 or more", 0))};
  bool transposed = attrs.flag("transpose_w");
  if (is_block(w.dtype()) && !transposed)
    return {x.builder().fail(Status(Code::kShape, "a block-quantised w is stored [N,K]: transpose_w must be true"))};
  std::vector<Dim> dims = x.dims();
  if (!require_inner(x, dims.back(), w.dim(transposed ? 1 : 0))) return {};
  Expr rows = x.rank() == 2 ? x : reshape(x, {element_count(std::span(dims).first(dims.size() - 1)), dims.back()});
  Expr y = matmul(rows, w, {.b = transposed});
  dims.back() = w.dim(transposed ? 0 : 1);
  if (bias && require_shape(bias, "bias", std::span(dims).last(1))) y = y + bias;
  if (x.rank() != 2) y = reshape(y, dims);
  return {apply_ending(y, attrs)};
}

Outputs decompose_gated_act(const Inputs& in, const Attrs& attrs) {
  return {in[1] * apply_act(in[0], attrs.str("act"))};
}

Outputs decompose_glu(const Inputs& in, const Attrs& attrs) {
  Expr x = in[0];
  int64_t axis = attrs.i64("axis");
  Dim n = x.dim(axis);
  auto half = divided(x, n, 2);
  if (!half) return {};
  Expr lo = slice(x, axis, 0, *half), hi = slice(x, axis, *half, n);
  Expr gate = attrs.flag("gate_first") ? lo : hi, up = attrs.flag("gate_first") ? hi : lo;
  return {up * apply_act(gate, attrs.str("act"))};
}

}  // namespace rlx
