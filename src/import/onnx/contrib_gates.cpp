// SPDX-License-Identifier: Apache-2.0
// Node kinds of the domain com.microsoft that decoders use between their attentions: gates, and norms of parts of a
// row. They compute in f32 whatever their operands are.
#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

Expr wide(Expr x) {
  return cast(x, DType::kF32);
}

// The rows of x cut into pieces of this size, each divided by the root of its mean square.
Expr normal_pieces(Expr x, const Dim& size, double eps) {
  std::vector<Dim> dims = x.dims();
  dims.back() = floor_div(dims.back(), size);
  dims.push_back(size);
  Expr pieces = reshape(wide(x), dims);
  return pieces / sqrt(mean(pieces * pieces, {static_cast<int64_t>(dims.size()) - 1}) + eps);
}

// Each of the heads that stand side by side is normalised, then gated.
void build_gated_norm(Call& call) {
  std::string_view act = call.text("activation", "silu");
  double eps = call.f64("epsilon", 1e-5);
  Expr x = call.in(0), scale = call.in(1), gate = call.in(2);
  if (!x.valid() || !scale.valid() || !gate.valid()) return;
  if (x.rank() == 0 || scale.rank() != 1) return call.fail(Code::kShape, "'scale' must have rank 1, X 1 or more");
  bool is_silu = act == "silu" || act == "swish";
  if (!is_silu && act != "sigmoid") return call.fail(Code::kUnsupported, "'activation' is " + std::string(act));
  Expr y = reshape(normal_pieces(x, scale.dim(0), eps) * wide(scale), x.dims());
  call.out(0, cast(y * call.op(is_silu ? "silu" : "sigmoid", {wide(gate)}), x.dtype()));
}

// The branches are the axis before the last, or stand side by side in the last.
void build_branch_norm(Call& call) {
  int64_t branches = call.i64("num_branches", 0);
  double eps = call.f64("epsilon", 1e-5);
  Expr x = call.in(0), scale = call.in(1);
  if (!x.valid() || x.rank() < (branches > 0 ? 1U : 2U)) return call.fail(Code::kShape, "X has too few axes");
  Dim count = branches > 0 ? Dim(branches) : x.dim(-2);
  Dim size = branches > 0 ? floor_div(x.dim(-1), count) : x.dim(-1);
  std::vector<Dim> split = x.dims();
  if (branches > 0) split.back() = count, split.push_back(size);
  Expr y = reshape(normal_pieces(x, size, eps), split);
  if (scale) {
    bool is_every = scale.valid() && scale.rank() == 1 && !(scale.dim(0) == size);
    y = y * wide(is_every ? reshape(scale, {count, size}) : scale);
  }
  call.out(0, cast(reshape(y, x.dims()), x.dtype()));
}

void build_attention_gate(Call& call) {
  Expr a = call.in(0), b = call.in(3);
  if (!a.valid()) return;
  Expr decay = call.op("softplus", {wide(a) + wide(call.in(1))}) * wide(call.in(2));
  call.out(0, cast(decay, a.dtype()));
  if (!call.wants(1)) return;
  if (!b) return call.fail(Code::kData, "'beta' needs the input 'b'");
  call.out(1, cast(call.op("sigmoid", {wide(b)}), b.dtype()));
}

void build_scaled_silu(Call& call) {
  double alpha = call.f64("alpha", 1);
  Expr x = call.in(0), scale = call.in(1);
  Expr z = cast(scale ? wide(x) * reshape(wide(scale), {}) : wide(x) * alpha, x.dtype());
  call.out(0, z * cast(call.op("sigmoid", {wide(z)}), z.dtype()));
}

void build_gated_add(Call& call) {
  call.out(0, call.in(0) + call.in(1) * call.in(2));
}

// ---- several streams beside each other ----

// [.., branches, size], of streams that may stand side by side in the last axis.
Expr grouped(Expr x, int64_t branches) {
  if (branches < 1 || x.rank() == 0) return x;
  std::vector<Dim> dims = x.dims();
  dims.back() = branches;
  dims.emplace_back(-1);
  return reshape(x, dims);
}

// Gates of streams: one number each, or one for each element.
Expr gates_of(Expr gates, Expr streams) {
  if (!gates.valid() || gates.rank() == streams.rank()) return wide(gates);
  bool is_one = gates.rank() > 0 && gates.dim(-1) == streams.dim(-2);
  return wide(is_one ? unsqueeze(gates, -1)
                     : grouped(gates, streams.dim(-2).is_literal() ? streams.dim(-2).literal() : 0));
}

void build_pre_mix(Call& call) {
  int64_t branches = call.i64("num_branches", 0);
  double scale = call.f64("reduction_scale", 1);
  Expr x = call.in(0);
  if (!x.valid() || x.rank() < (branches > 0 ? 1U : 2U)) return call.fail(Code::kShape, "'streams' has too few axes");
  Expr streams = grouped(x, branches), gates = gates_of(call.in(1), streams);
  if (!streams.valid() || !gates.valid()) return;
  int64_t axis = static_cast<int64_t>(streams.rank()) - 2;
  Expr y = reduce(wide(streams) * gates, "sum", {axis}, KeepDims::kNo) * scale;
  call.out(0, cast(y, x.dtype()));
}

void build_post_mix(Call& call) {
  int64_t branches = call.i64("num_branches", 0);
  Expr x = call.in(0);
  if (!x.valid() || x.rank() < (branches > 0 ? 1U : 2U)) return call.fail(Code::kShape, "'streams' has too few axes");
  Expr streams = grouped(x, branches), gates = gates_of(call.in(2), streams), block = call.in(1);
  if (!streams.valid() || !gates.valid() || !block.valid()) return;
  Expr mixed = call.has(3) ? matmul(wide(call.in(3)), wide(streams), {.a = true}) : wide(streams);
  Expr y = mixed + gates * wide(unsqueeze(block, -2));
  call.out(0, cast(reshape(y, x.dims()), x.dtype()));
}

// How well keys and queries agree opens the way for a value.
void build_engram_gate(Call& call) {
  double eps = call.f64("epsilon", 1e-5);
  Expr key = call.in(0), query = call.in(1), value = call.in(2);
  if (!key.valid() || !query.valid() || !value.valid()) return;
  if (key.rank() != 4 || query.rank() != 4 || value.rank() != 3)
    return call.fail(Code::kShape, "its inputs must have rank 4, 4 and 3");
  auto normal = [&](Expr x, Expr scale) { return reshape(normal_pieces(x, x.dim(3), eps), x.dims()) * wide(scale); };
  Expr dot = sum(normal(key, call.in(3)) * normal(query, call.in(4)), {3});
  dot = dot / sqrt(call.builder().size(key.dim(3), DType::kF32));
  Expr gate = call.op("sigmoid", {call.op("sign", {dot}) * sqrt(maximum(abs(dot), 1e-6))});
  Expr y = gate * wide(unsqueeze(value, 2));
  call.out(0, cast(y, value.dtype()));
  if (!call.wants(1)) return;
  if (!call.has(5)) return call.fail(Code::kData, "'gated_value_normed' needs the input 'conv_norm_scale'");
  call.out(1, cast(normal(y, call.in(5)), value.dtype()));
}

constexpr NodeKind kKinds[] = {
    microsoft("GatedRMSNorm", build_gated_norm),
    microsoft("BranchwiseRMSNorm", build_branch_norm),
    microsoft("LinearAttentionGate", build_attention_gate),
    microsoft("ScaledSiLU", build_scaled_silu),
    microsoft("GatedAdd", build_gated_add),
    microsoft("HyperConnectionPreMix", build_pre_mix),
    microsoft("HyperConnectionPostMix", build_post_mix),
    microsoft("EngramGate", build_engram_gate),
};

}  // namespace

std::span<const NodeKind> contrib_gate_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
