// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts of the domain com.microsoft.
#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

// One of the three products of every expert.
struct Layer {
  Expr weight, bias;
};

// Weights of a few bits, [experts, rows, K], the first of a byte in its low bits. A scale and a zero point are those of
// a row, or of a block along K.
Expr dequantized(Call& call, size_t weight, size_t zeros, int64_t bits) {
  Expr packed = call.in(weight), scale = call.in(weight + 1);
  if (!packed || !packed.valid() || !scale || !scale.valid()) return packed;
  if (packed.rank() != 3 || packed.dtype() != DType::kU8 || (scale.rank() != 2 && scale.rank() != 3))
    return call.builder().fail(Status(Code::kShape, "weights must be u8 of rank 3, scales of rank 2 or 3"));
  auto wide = [&](Expr x) { return bits == 8 ? x : call.op("unpack_bits", {x}, {{"bits", bits}}); };
  Expr numbers = wide(packed);
  if (!numbers.valid()) return numbers;
  std::vector<Dim> dims = numbers.dims();
  Dim blocks = scale.rank() == 3 ? scale.dim(2) : Dim(1);
  std::vector<Dim> in_blocks{dims[0], dims[1], blocks, floor_div(dims[2], blocks)},
      one_each{dims[0], dims[1], blocks, 1};
  Expr zero = call.builder().scalar(DType::kF32, static_cast<double>(int64_t{1} << (bits - 1)));
  if (call.has(zeros)) {
    Expr given = wide(call.in(zeros));
    if (given.valid() && given.rank() == 3) given = slice(given, 2, 0, blocks);  // the last byte may have room for more
    zero = reshape(cast(given, DType::kF32), one_each);
  }
  Expr centred = reshape(cast(numbers, DType::kF32), in_blocks) - zero;
  return cast(reshape(centred * reshape(cast(scale, DType::kF32), one_each), dims), call.type(0).dtype);
}

bool is_quantized(Call& call) {
  return call.kind().op_type == "QMoE";
}

Layer layer_of(Call& call, size_t i) {
  static constexpr const char* kBits[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
  if (!is_quantized(call)) return {call.in(2 + 2 * i), call.in(3 + 2 * i)};
  int64_t bits = call.i64(kBits[i], call.i64("expert_weight_bits", 4));
  if (bits != 2 && bits != 4 && bits != 8) call.fail(Code::kData, format("weights of {} bits", bits));
  return {dequantized(call, 2 + 3 * i, 11 + i, bits), call.in(4 + 3 * i)};
}

// How other runtimes compute, and what only they can read.
void check_quantized(Call& call) {
  if (!is_quantized(call)) return;
  call.ignore("accuracy_level");
  call.ignore("block_size");  // the scales say it
  if (std::string_view type = call.text("quant_type", "int"); type != "int")
    call.fail(Code::kUnsupported, "the 'quant_type' " + std::string(type));
  if (call.i64("weights_prepacked", 0) > 0) call.fail(Code::kUnsupported, "weights in an order of another runtime");
  static constexpr size_t kRouterWeights = 14;
  for (size_t i = kRouterWeights; i < call.inputs(); i++)
    if (call.has(i)) call.fail(Code::kUnsupported, format("input {}", i));
}

// Which experts each token goes to, [T, k], and their weights.
std::pair<Expr, Expr> routes(Call& call) {
  int64_t k = call.i64("k", 1);
  bool normalizes = call.i64("normalize_routing_weights", 0) != 0;
  Expr in[] = {call.in(1)};
  Outputs gate = call.ops("moe_gate", in, {{"k", k}, {"normalize", int64_t{normalizes}}});
  if (gate.size() < 2) return {};
  return {gate[0], gate[1]};
}

struct Swiglu {
  double alpha, beta, limit;
  int64_t fusion;
};

// Its gate and what it gates are two products, or lie in one: in pairs, or one after the other.
Expr swiglu(Expr gate, Expr linear, const Swiglu& how) {
  if (!gate.valid()) return gate;
  if (how.fusion != 0) {
    Dim rows = gate.dim(0), half = floor_div(gate.dim(1), Dim(2));
    bool is_paired = how.fusion == 1;
    Expr both = is_paired ? reshape(gate, {rows, half, Dim(2)}) : reshape(gate, {rows, Dim(2), half});
    int64_t axis = is_paired ? 2 : 1;
    gate = reshape(slice(both, axis, 0, 1), {rows, half});
    linear = reshape(slice(both, axis, 1, 2), {rows, half});
  }
  if (how.limit > 0) {
    gate = minimum(gate, how.limit);
    linear = maximum(minimum(linear, how.limit), -how.limit);
  }
  Expr scaled = how.alpha == 1 ? gate : gate * how.alpha;
  return gate * unary(Op::kSigmoid, scaled) * (how.beta == 0 ? linear : linear + how.beta);
}

void build_experts(Call& call) {
  std::string_view type = call.text("activation_type", "relu");
  Swiglu how{call.f64("activation_alpha", 1), call.f64("activation_beta", 0), call.f64("swiglu_limit", 0),
             call.i64("swiglu_fusion", 0)};
  check_quantized(call);
  if (call.i64("use_sparse_mixer", 0) != 0) return call.fail(Code::kUnsupported, "a sparse mixer");
  if (type != "relu" && type != "gelu" && type != "silu" && type != "swiglu" && type != "identity")
    return call.fail(Code::kUnsupported, "the activation " + std::string(type));
  Expr x = call.in(0);
  if (!x.valid() || (x.rank() != 2 && x.rank() != 3)) return call.fail(Code::kShape, "input must have rank 2 or 3");
  Layer up = layer_of(call, 0), down = layer_of(call, 1), other = layer_of(call, 2);
  auto [weights, index] = routes(call);
  if (!weights.valid() || !up.weight.valid() || !down.weight.valid()) return;
  bool is_swiglu = type == "swiglu";
  if (is_swiglu && how.fusion == 0 && !other.weight)
    return call.fail(Code::kData, "swiglu of two products needs the third bank");
  std::vector<Dim> dims = x.dims();
  Expr tokens = reshape(x, {Dim(-1), dims.back()});
  std::string act = type == "identity" ? "none" : type == "gelu" ? "gelu_tanh" : std::string(type);
  Expr none(&call.builder(), kAbsent);
  bool is_plain = !is_swiglu && !up.bias && !down.bias && !other.bias;
  if (is_plain) {
    Expr gate = other.weight ? up.weight : none;
    Expr y = call.op("moe_ffn", {tokens, other.weight ? other.weight : up.weight, down.weight, index, weights, gate},
                     {{"act", act}, {"transpose_w", int64_t{1}}});
    return call.out(0, reshape(y, dims));
  }
  Dim count = tokens.dim(0), k = index.dim(1);
  Expr expert = reshape(index, {count * k});
  auto through = [&](Expr rows, const Layer& layer) {
    Expr y = call.op("grouped_matmul", {rows, layer.weight, expert}, {{"transpose_w", int64_t{1}}});
    return layer.bias ? y + gather(layer.bias, expert, 0) : y;
  };
  Expr rows = reshape(broadcast_to(unsqueeze(tokens, 1), {count, k, dims.back()}), {count * k, dims.back()});
  Expr first = through(rows, up), second = other.weight ? through(rows, other) : none, hidden;
  if (is_swiglu)
    hidden = swiglu(first, second, how);
  else if (act == "none")
    hidden = first;
  else
    hidden = type == "gelu" ? call.op("gelu", {first}, {{"approx", "tanh"}}) : call.op(act, {first});
  if (!is_swiglu && other.weight) hidden = hidden * second;
  Expr y = reshape(through(hidden, down), {count, k, dims.back()});
  call.out(0, reshape(reduce(y * unsqueeze(weights, 2), "sum", {1}), dims));
}

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr NodeKind kKinds[] = {
    {"MoE", build_experts, "", nullptr, {}, kMicrosoft},
    {"QMoE", build_experts, "", nullptr, {}, kMicrosoft},
};

}  // namespace

std::span<const NodeKind> contrib_expert_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
