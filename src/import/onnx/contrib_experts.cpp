// SPDX-License-Identifier: Apache-2.0
// Mixtures of experts of the domain com.microsoft.
#include <algorithm>
#include <tuple>

#include "import/onnx/contrib.h"

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

// Where the inputs lie: both kinds begin with the tokens and the logits of the router. Then each layer has a weight, in
// QMoE its scale, and a bias. QMoE has zero points behind all of them, and weights for the router's choice at the end.
constexpr size_t kFirstLayer = 2, kFirstZeroPoint = 11, kRouterWeights = 14;

// fc1, fc2 or fc3.
Layer layer_of(Call& call, size_t i) {
  static constexpr const char* kBits[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits", "fc3_expert_weight_bits"};
  if (!is_quantized(call)) return {call.in(kFirstLayer + 2 * i), call.in(kFirstLayer + 2 * i + 1)};
  bool has_own = call.has_attr(kBits[i]);
  call.ignore("expert_weight_bits");
  int64_t bits = packed_bits(call, has_own ? kBits[i] : "expert_weight_bits", 4);
  size_t weight = kFirstLayer + 3 * i;
  return {dequantized(call, weight, kFirstZeroPoint + i, bits), call.in(weight + 2)};
}

// Ignores attributes about how a runtime computes, and refuses weights in a layout that only that runtime reads.
void check_quantized(Call& call) {
  if (!is_quantized(call)) return;
  call.ignore("accuracy_level");
  call.ignore("block_size");  // the scales say it
  if (std::string_view type = call.text("quant_type", "int"); type != "int")
    call.fail(Code::kUnsupported, "the 'quant_type' " + std::string(type));
  if (call.i64("weights_prepacked", 0) > 0) call.fail(Code::kUnsupported, "weights in an order of another runtime");
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

// A mixture whose inputs are checked. Each expert has two or three layers: fc2(act(fc1(x))), or fc2(act(fc1(x)) *
// fc3(x)). fc2 leads back to the size of a token.
struct Experts {
  std::string_view activation;
  Swiglu how;  // of the activation "swiglu"
  Layer fc1, fc2, fc3;
  Expr tokens;          // [T, size]
  Expr weights, index;  // of the experts of each token, [T, k]
};

// Built as the op moe_ffn, which has neither biases nor swiglu.
Expr mixed_by_op(Call& call, const Experts& it) {
  std::string act(it.activation == "identity" ? "none" : it.activation == "gelu" ? "gelu_tanh" : it.activation);
  bool is_gated = bool(it.fc3.weight);
  Expr up = is_gated ? it.fc3.weight : it.fc1.weight;
  Expr gate = is_gated ? it.fc1.weight : Expr(&call.builder(), kAbsent);
  return call.op("moe_ffn", {it.tokens, up, it.fc2.weight, it.index, it.weights, gate},
                 {{"act", act}, {"transpose_w", int64_t{1}}});
}

// `linear`: the result of fc3, or absent.
Expr activated(Call& call, const Experts& it, Expr y, Expr linear) {
  if (it.activation == "swiglu") return swiglu(y, linear, it.how);
  if (it.activation == "gelu")
    y = call.op("gelu", {y}, {{"approx", "tanh"}});
  else if (it.activation != "identity")
    y = call.op(it.activation, {y});
  return linear ? y * linear : y;
}

// Layer by layer, on one row for each token and expert.
Expr mixed_by_layers(Call& call, const Experts& it) {
  Dim count = it.tokens.dim(0), k = it.index.dim(1), size = it.tokens.dim(1);
  Expr expert = reshape(it.index, {count * k});
  auto through = [&](Expr rows, const Layer& layer) {
    Expr y = call.op("grouped_matmul", {rows, layer.weight, expert}, {{"transpose_w", int64_t{1}}});
    return layer.bias ? y + gather(layer.bias, expert, 0) : y;
  };
  Expr rows = reshape(broadcast_to(unsqueeze(it.tokens, 1), {count, k, size}), {count * k, size});
  Expr y = through(rows, it.fc1), linear;
  if (it.fc3.weight) linear = through(rows, it.fc3);
  y = reshape(through(activated(call, it, y, linear), it.fc2), {count, k, size});
  return reduce(y * unsqueeze(it.weights, 2), "sum", {1});
}

void build_experts(Call& call) {
  Experts it;
  it.activation = call.text("activation_type", "relu");
  it.how = {call.f64("activation_alpha", 1), call.f64("activation_beta", 0), call.f64("swiglu_limit", 0),
            call.i64("swiglu_fusion", 0)};
  check_quantized(call);
  if (call.i64("use_sparse_mixer", 0) != 0) return call.fail(Code::kUnsupported, "a sparse mixer");
  static constexpr std::string_view kActivations[] = {"relu", "gelu", "silu", "swiglu", "identity"};
  if (std::ranges::find(kActivations, it.activation) == std::end(kActivations))
    return call.fail(Code::kUnsupported, "the activation " + std::string(it.activation));
  Expr x = call.in(0);
  if (!x.valid() || (x.rank() != 2 && x.rank() != 3)) return call.fail(Code::kShape, "input must have rank 2 or 3");
  it.fc1 = layer_of(call, 0), it.fc2 = layer_of(call, 1), it.fc3 = layer_of(call, 2);
  std::tie(it.weights, it.index) = routes(call);
  if (!it.weights.valid() || !it.fc1.weight.valid() || !it.fc2.weight.valid()) return;
  bool is_swiglu = it.activation == "swiglu";
  if (is_swiglu && it.how.fusion == 0 && !it.fc3.weight)
    return call.fail(Code::kData, "swiglu of two products needs the weights of fc3");
  it.tokens = reshape(x, {Dim(-1), x.dim(-1)});
  bool has_op = !is_swiglu && !it.fc1.bias && !it.fc2.bias && !it.fc3.bias;
  call.out(0, reshape(has_op ? mixed_by_op(call, it) : mixed_by_layers(call, it), x.dims()));
}

constexpr NodeKind kKinds[] = {
    microsoft("MoE", build_experts),
    microsoft("QMoE", build_experts),
};

}  // namespace

std::span<const NodeKind> contrib_expert_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
