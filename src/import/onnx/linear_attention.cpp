// SPDX-License-Identifier: Apache-2.0
// ONNX's LinearAttention (opset 27): a scan over time whose state is a matrix [d_k, d_v] a head, in f32.
#include <algorithm>
#include <cmath>
#include <optional>

#include "import/onnx/call.h"
#include "ops/recurrent.h"

namespace rlx::onnx {

namespace {

// [B, T, H * D] as columns [T, B, H, D, 1], or as rows [T, B, H, 1, D].
enum class As { kColumns, kRows };
Expr by_time(Expr x, int64_t heads, As as) {
  Expr split = cast(transpose(reshape(x, {x.dim(0), x.dim(1), Dim(heads), Dim(-1)}), {1, 0, 2, 3}), DType::kF32);
  return unsqueeze(split, as == As::kRows ? 3 : 4);
}

// The update rule, as the attributes and the inputs that are there define it.
struct Rule {
  bool gates;     // the state decays
  bool corrects;  // a value is corrected by what the state gives for its key
  int64_t q_heads, heads;
};

// nullopt if the attributes or the inputs do not fit; the call has failed then.
std::optional<Rule> rule_of(Call& call) {
  auto refuse = [&](Code code, std::string why) { return call.fail(code, std::move(why)), std::nullopt; };
  std::string_view name = call.text("update_rule", "gated_delta");
  Rule rule{name == "gated" || name == "gated_delta", name == "delta" || name == "gated_delta",
            call.i64("q_num_heads", 0), call.i64("kv_num_heads", 0)};
  if (call.i64("state_window", 0) != 0) return refuse(Code::kUnsupported, "a window of states");
  if (!rule.gates && !rule.corrects && name != "linear")
    return refuse(Code::kData, "'update_rule' is " + std::string(name));
  if (rule.heads < 1 || rule.q_heads < 1 || rule.q_heads % rule.heads != 0)
    return refuse(Code::kData, "'q_num_heads' must be a positive multiple of 'kv_num_heads'");
  Expr q = call.in(0), k = call.in(1), v = call.in(2), decay = call.in(4), beta = call.in(5);
  if (bool(decay) != rule.gates || bool(beta) != rule.corrects)
    return refuse(Code::kData, "'decay' and 'beta' must be there where 'update_rule' needs them");
  if (!q.valid() || !k.valid() || !v.valid() || q.rank() != 3 || k.rank() != 3 || v.rank() != 3)
    return refuse(Code::kShape, "query, key and value must have rank 3");
  return rule;
}

double scale_of(Call& call, const Dim& width) {
  if (double scale = call.f64("scale", 0); scale != 0) return scale;
  if (!width.is_literal()) return call.fail_of_sizes("a size of keys that is not known"), 1;
  return 1 / std::sqrt(static_cast<double>(width.literal()));
}

// What a step reads: q of all heads that share a key, k, v, then decay and beta if the rule has them.
std::vector<Expr> steps_of(Call& call, const Rule& rule, const Dim& width) {
  Expr q = call.in(0);
  std::vector<Dim> split{q.dim(0), q.dim(1), Dim(rule.heads), Dim(rule.q_heads / rule.heads), width};
  Expr queries = cast(transpose(reshape(q, split), {1, 0, 2, 3, 4}), DType::kF32);
  std::vector<Expr> xs{queries, by_time(call.in(1), rule.heads, As::kColumns),
                       by_time(call.in(2), rule.heads, As::kRows)};
  if (rule.gates) xs.push_back(by_time(call.in(4), rule.heads, As::kColumns));  // [.., d_k, 1], or [.., 1, 1]
  if (rule.corrects) {
    Expr rate = transpose(cast(call.in(5), DType::kF32), {1, 0, 2});
    xs.push_back(reshape(rate, {rate.dim(0), rate.dim(1), rate.dim(2), Dim(1), Dim(1)}));
  }
  return xs;
}

void build_linear_attention(Call& call) {
  call.ignore("chunk_size");  // how fast, not what
  std::optional<Rule> found = rule_of(call);
  if (!found) return;
  const Rule& rule = *found;
  Expr q = call.in(0), past = call.in(3);
  DType dtype = q.dtype(), state_dtype = past ? past.dtype() : dtype;
  Dim batch = q.dim(0), steps = q.dim(1), width = floor_div(call.in(1).dim(2), Dim(rule.heads));
  double scale = scale_of(call, width);
  std::vector<Expr> xs = steps_of(call, rule, width);
  auto zeros = [&] {
    return broadcast_to(call.builder().scalar(DType::kF32, 0), {batch, Dim(rule.heads), width, xs[2].dim(4)});
  };
  Expr first = past ? cast(past, DType::kF32) : zeros();
  if (!first.valid() || !std::ranges::all_of(xs, &Expr::valid)) return;

  std::array carries{first};
  Outputs results = scan(carries, xs, {}, ScanOrder::kForward, [&](auto carry, auto now, auto) -> std::vector<Expr> {
    Expr kept = rule.gates ? carry[0] * exp(now[3]) : carry[0], value = now[2];
    if (rule.corrects) value = (value - matmul(now[1], kept, {.a = true})) * now.back();
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
    microsoft("LinearAttention", build_linear_attention),
};

}  // namespace

std::span<const NodeKind> linear_attention_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
