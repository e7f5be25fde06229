// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts: the choice of experts for each token, and their results.
#include "ops/fused_act.h"

namespace rlx {

Outputs decompose_moe_gate(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr logits = in[0], bias = in[1];
  if (logits.rank() != 2) return {b.fail(wrong_rank("logits", "2", logits.rank())), b.wrap(kInvalid)};
  if (bias && !require_shape(bias, "bias", {logits.dim(1)})) return {};
  auto best = [&](Expr x) {
    return b.ops(Op::kTopK, {bias ? x + bias : x},
                 {{"k", Dim(attrs.i64("k"))}, {"index_dtype", attrs.dtype("index_dtype")}});
  };
  auto at = [&](Expr x, Expr index) { return b.op(Op::kGatherElements, {x, index}, {{"axis", int64_t{1}}}); };
  auto softmax = [&](Expr x) { return b.op(Op::kSoftmax, {x}); };
  Expr index, weight;
  if (attrs.is("mode", "topk_softmax")) {
    index = best(logits)[1];
    weight = softmax(at(logits, index));
  } else {
    Expr p = attrs.is("mode", "sigmoid_topk") ? unary(Op::kSigmoid, logits) : softmax(logits);
    index = best(p)[1];
    weight = at(p, index);
  }
  if (attrs.flag("normalize")) weight = weight / sum(weight, {1});
  return {weight * attrs.f64("scale"), index};
}

// Each token is copied to k rows, one for each of its experts.
Outputs decompose_moe_ffn(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0], index = in[3], weights = in[4];
  if (x.rank() != 2) return {b.fail(wrong_rank("x", "2", x.rank()))};
  if (index.rank() != 2) return {b.fail(wrong_rank("idx", "2", index.rank()))};
  Dim tokens = x.dim(0), k = index.dim(1);
  if (!require_shape(index, "idx", {tokens, k}) || !require_shape(weights, "weights", index.dims())) return {};
  Expr rows = reshape(broadcast_to(unsqueeze(x, 1), {tokens, k, x.dim(1)}), {tokens * k, x.dim(1)});
  Expr expert = reshape(index, {tokens * k});
  auto through = [&](Expr rows, Expr bank) {
    return b.op(Op::kGroupedMatmul, {rows, bank, expert}, {{"transpose_w", int64_t{attrs.flag("transpose_w")}}});
  };
  std::string act = attrs.str("act");
  Expr up = through(rows, in[1]);
  Expr hidden = in[5] ? up * apply_act(through(rows, in[5]), act) : apply_act(up, act);
  Expr y = through(hidden, in[2]);
  if (!y.valid()) return {y};
  return {reduce(reshape(y, {tokens, k, y.dim(1)}) * unsqueeze(weights, 2), "sum", {1}, KeepDims::kNo)};
}

}  // namespace rlx
