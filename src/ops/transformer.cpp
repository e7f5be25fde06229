// SPDX-License-Identifier: Apache-2.0
// Whole blocks of transformers, from the ops that they are made of.
#include "ops/expr.h"

namespace rlx {

static Expr linear(Expr x, Expr w, Expr bias, const Attrs& attrs, const std::string& act = "none") {
  return x.builder().op(Op::kLinear, {x, w, bias}, {{"transpose_w", int64_t{attrs.flag("transpose_w")}}, {"act", act}});
}

Outputs decompose_attention_block(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr x = in[0], cos = in[7], sin = in[8], positions = in[9];
  if (x.rank() != 3) return {b.fail(wrong_rank("x", "3", x.rank()))};
  if (bool(cos) != bool(sin)) return {b.fail(Status(Code::kOption, "'cos' and 'sin' go together"))};
  int64_t heads = attrs.i64("num_heads"), kv_heads = attrs.i64("num_kv_heads");
  Expr qkv = linear(x, in[1], in[5], attrs);
  if (!qkv.valid()) return {qkv};
  auto width = divided(qkv, qkv.dim(2), heads + 2 * kv_heads);
  if (!width) return {};
  Dim q_end = *width * heads, k_end = q_end + *width * kv_heads;
  Expr q = slice(qkv, 2, 0, q_end), k = slice(qkv, 2, q_end, k_end), v = slice(qkv, 2, k_end, qkv.dim(2));
  if (cos && positions) cos = gather(cos, positions, 0), sin = gather(sin, positions, 0);
  auto rotated = [&](Expr part, int64_t count) {
    if (!cos) return part;
    return b.op(Op::kRope, {part, cos, sin},
                {{"layout", std::string("bsx")}, {"num_heads", count}, {"style", attrs.str("rope_style")}});
  };
  NamedAttrs forward{{"layout", std::string("bsx")}, {"num_heads", heads}, {"num_kv_heads", kv_heads}};
  for (const char* name : {"scale", "softcap", "causal", "align", "window_left", "window_right", "empty_row"})
    if (attrs.has(name)) forward.emplace_back(name, attrs.get(name));
  Outputs y = b.ops(Op::kAttention, {rotated(q, heads), rotated(k, kv_heads), v, in[3], in[4]}, forward);
  if (y.empty()) return {};
  return {linear(y[0], in[2], in[6], attrs)};
}

Outputs decompose_transformer_layer(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  auto attention = [&](Expr x) {
    return b.op(Op::kAttentionBlock, {x, in[1], in[2], in[5], in[6], in[7], in[8]},
                {{"num_heads", attrs.i64("num_heads")},
                 {"num_kv_heads", attrs.i64("num_kv_heads")},
                 {"transpose_w", int64_t{attrs.flag("transpose_w")}},
                 {"causal", int64_t{attrs.flag("causal")}}});
  };
  auto feed_forward = [&](Expr x) {
    return linear(linear(x, in[3], in[11], attrs, attrs.str("act")), in[4], in[12], attrs);
  };
  Expr x = in[0], gamma1 = in[9], beta1 = in[10], gamma2 = in[13], beta2 = in[14];
  NamedAttrs eps1{{"eps", attrs.f64("eps1")}}, eps2{{"eps", attrs.f64("eps2")}};
  if (attrs.flag("pre_norm")) {
    Expr a = x + attention(b.op(Op::kLayerNorm, {x, gamma1, beta1}, eps1));
    return {a + feed_forward(b.op(Op::kLayerNorm, {a, gamma2, beta2}, eps2))};
  }
  Expr a = b.op(Op::kResidualLayerNorm, {attention(x), x, Expr(), gamma1, beta1}, eps1);
  return {b.op(Op::kResidualLayerNorm, {feed_forward(a), a, Expr(), gamma2, beta2}, eps2)};
}

}  // namespace rlx
