// SPDX-License-Identifier: Apache-2.0
// ONNX's LinearAttention (opset 27): a scan over time whose state is a matrix [d_k, d_v] a head, in f32.
#include <cmath>

#include "import/onnx/call.h"
#include "ops/recurrent.h"

namespace rlx::onnx {

namespace {

// [B, T, H * D] as [T, B, H, D, 1] or, as a row, [T, B, H, 1, D].
Expr by_time(Expr x, int64_t heads, bool is_row) {
  Expr split = cast(transpose(reshape(x, {x.dim(0), x.dim(1), Dim(heads), Dim(-1)}), {1, 0, 2, 3}), DType::kF32);
  return unsqueeze(split, is_row ? 3 : 4);
}

void build_linear_attention(Call& call) {
  call.ignore("chunk_size");  // how fast, not what
  if (call.i64("state_window", 0) != 0) return call.fail(Code::kUnsupported, "a window of states");
  Builder& b = call.builder();
  std::string_view rule = call.text("update_rule", "gated_delta");
  bool gates = rule == "gated" || rule == "gated_delta", corrects = rule == "delta" || rule == "gated_delta";
  if (!gates && !corrects && rule != "linear") return call.fail(Code::kData, "'update_rule' is " + std::string(rule));
  int64_t q_heads = call.i64("q_num_heads", 0), heads = call.i64("kv_num_heads", 0);
  double scale = call.f64("scale", 0);
  Expr q = call.in(0), k = call.in(1), v = call.in(2), past = call.in(3), decay = call.in(4), beta = call.in(5);
  if (heads < 1 || q_heads < 1 || q_heads % heads != 0)
    return call.fail(Code::kData, "'q_num_heads' must be a positive multiple of 'kv_num_heads'");
  if (bool(decay) != gates || bool(beta) != corrects)
    return call.fail(Code::kData, "'decay' and 'beta' must be there where 'update_rule' needs them");
  if (!q.valid() || !k.valid() || !v.valid() || q.rank() != 3 || k.rank() != 3 || v.rank() != 3)
    return call.fail(Code::kShape, "query, key and value must have rank 3");
  DType dtype = q.dtype(), state_dtype = past ? past.dtype() : dtype;
  Dim batch = q.dim(0), steps = q.dim(1), width = floor_div(k.dim(2), Dim(heads));
  if (scale == 0 && !width.is_literal()) return call.fail(Code::kUnsupported, "a size of keys that is not known");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(width.literal()));
  int64_t shared = q_heads / heads;
  Expr queries =
      cast(transpose(reshape(q, {batch, steps, Dim(heads), Dim(shared), width}), {1, 0, 2, 3, 4}), DType::kF32);
  std::vector<Expr> xs{queries, by_time(k, heads, false), by_time(v, heads, true)};
  if (gates) xs.push_back(by_time(decay, heads, false));  // [.., d_k, 1], or [.., 1, 1]
  if (corrects) {
    Expr rate = transpose(cast(beta, DType::kF32), {1, 0, 2});
    xs.push_back(reshape(rate, {rate.dim(0), rate.dim(1), rate.dim(2), Dim(1), Dim(1)}));
  }
  Expr first =
      past ? cast(past, DType::kF32) : broadcast_to(b.scalar(DType::kF32, 0), {batch, Dim(heads), width, xs[2].dim(4)});
  for (Expr x : xs)
    if (!x.valid()) return;
  if (!first.valid()) return;

  std::array carries{first};
  Outputs results = scan(carries, xs, {}, false, [&](auto carry, auto now, auto) -> std::vector<Expr> {
    Expr kept = gates ? carry[0] * exp(now[3]) : carry[0], value = now[2];
    if (corrects) value = (value - matmul(now[1], kept, true, false)) * now.back();
    Expr next = kept + now[1] * value;
    return {next, matmul(now[0], next) * scale};
  });
  if (results.size() < 2 || !results[1].valid()) return;
  Expr all = transpose(results[1], {1, 0, 2, 3, 4});  // [B, T, H, shared, d_v]
  call.out(0, cast(reshape(all, {batch, steps, Dim(-1)}), dtype));
  call.out(1, cast(results[0], state_dtype));
}

constexpr NodeKind kKinds[] = {
    {"LinearAttention", build_linear_attention},
    {"LinearAttention", build_linear_attention, "", nullptr, {}, "com.microsoft"},
};

}  // namespace

std::span<const NodeKind> linear_attention_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
