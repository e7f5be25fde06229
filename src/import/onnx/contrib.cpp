// SPDX-License-Identifier: Apache-2.0
// Node kinds of the domain com.microsoft, which optimisers of ONNX files write for norms, activations and products.
#include <algorithm>
#include <array>
#include <cmath>

#include "import/onnx/contrib.h"
#include "import/onnx/matmul.h"
#include "import/onnx/softmax.h"

namespace rlx::onnx {

int64_t packed_bits(Call& call, const char* attribute, int64_t fallback) {
  int64_t bits = call.i64(attribute, fallback);
  if (bits == 2 || bits == 4 || bits == 8) return bits;
  call.fail(Code::kData, format("'{}' is {}, not 2, 4 or 8", attribute, bits));
  return 8;
}

Expr ones_of_rows(Expr mask, Expr ids) {
  return mask ? reshape(reduce(cast(mask, DType::kI32), "sum", {1}), {ids.dim(0)})
              : broadcast_to(ids.builder().scalar(DType::kI32, 0), {ids.dim(0)});
}

namespace {

// ---- norms ----

// The norm of x + skip + bias, and the sum. A skip with fewer axes broadcasts.
void build_skip_norm(Call& call) {
  bool is_simple = call.kind().op == "residual_rms_norm";
  size_t bias = is_simple ? 3 : 4;
  Expr x = call.in(0), skip = call.in(1);
  if (!x.valid() || !skip.valid()) return;
  if (!(skip.dims() == x.dims())) skip = broadcast_to(skip, x.dims());
  Expr in[] = {x, skip, call.in(bias), call.in(2), is_simple ? Expr(&call.builder(), kAbsent) : call.in(3)};
  Outputs y = call.ops(call.kind().op, in, {{"eps", call.f64("epsilon", 1e-12)}});
  if (y.size() < 2) return;
  call.out(0, y[0]);
  call.out(3, y[1]);
  if (!call.wants(1) && !call.wants(2)) return;
  Outputs of_sum = call.ops(is_simple ? "rms_norm" : "layer_norm", {&y[1], 1}, {{"eps", call.f64("epsilon", 1e-12)}});
  for (size_t i = 1; i < of_sum.size() && of_sum[i].valid(); i++)
    call.out(is_simple ? 2 : i, cast(of_sum[i], DType::kF32));
}

// Embeddings of words, positions and segments, summed and normalised.
void build_embed_layer_norm(Call& call) {
  Expr ids = call.in(0), segments = call.in(1), mask = call.in(7), positions = call.in(8);
  if (!ids.valid() || ids.rank() != 2) return call.fail(Code::kShape, "input_ids must have rank 2");
  Builder& b = call.builder();
  call.ignore("mask_index_type");
  if (!positions) positions = iota(b, {ids.dim(1)}, 0, DType::kI64);
  Expr total = gather(call.in(2), ids, 0) + gather(call.in(3), positions, 0);
  if (segments && call.has(4)) total = total + gather(call.in(4), segments, 0);
  call.out(0, call.op("layer_norm", {total, call.in(5), call.in(6)}, {{"eps", call.f64("epsilon", 1e-12)}}));
  call.out(1, ones_of_rows(mask, ids));
  call.out(2, total);
}

// The channel axis is the last or the second.
void build_group_norm(Call& call) {
  bool is_last = call.i64("channels_last", 1) != 0, is_skip = call.kind().op_type == "SkipGroupNorm";
  Expr x = call.in(0);
  if (!x.valid() || x.rank() < 3) return call.fail(Code::kShape, "X must have rank 3 or more");
  if (is_skip) {
    Expr skip = call.in(3);
    if (skip.valid() && skip.rank() == 2) skip = reshape(skip, {skip.dim(0), Dim(1), Dim(1), skip.dim(1)});
    x = x + skip;
    if (call.has(4)) x = x + call.in(4);
    call.out(1, x);
  }
  Axes to_first{0, static_cast<int64_t>(x.rank()) - 1}, to_last{0};
  for (int64_t i = 1; i + 1 < static_cast<int64_t>(x.rank()); i++) to_first.push_back(i), to_last.push_back(i + 1);
  to_last.push_back(1);
  Expr y = call.op("group_norm", {is_last ? transpose(x, to_first) : x, call.in(1), call.in(2)},
                   {{"groups", call.i64("groups", 1)}, {"eps", call.f64("epsilon", 1e-5)}});
  if (call.i64("activation", 0) != 0) y = call.op("silu", {y});
  call.out(0, is_last ? transpose(y, to_last) : y);
}

// ---- activations ----

Expr biased(Call& call) {
  return call.has(1) ? call.in(0) + call.in(1) : call.in(0);
}

void build_gelu(Call& call) {
  NamedAttrs attrs;
  if (call.kind().op_type == "FastGelu") attrs.emplace_back("approx", "tanh");
  call.out(0, call.op("gelu", {biased(call)}, attrs));
}

void build_quick_gelu(Call& call) {
  call.out(0, call.op("silu", {call.in(0)}, {{"beta", call.f64("alpha", 1.702)}}));
}

void build_bias_split_gelu(Call& call) {
  call.out(0, call.op("glu", {biased(call)}, {{"act", "gelu"}}));
}

void build_bias_add(Call& call) {
  call.out(0, biased(call) + call.in(2));
}

void build_bias_dropout(Call& call) {
  call.ignore("seed");
  if (call.has(4) && call.numbers(4, "training_mode") != std::vector<int64_t>{0})
    return call.fail(Code::kUnsupported, "'training_mode'");
  Expr y = biased(call);
  call.out(0, call.has(2) ? y + call.in(2) : y);
  if (call.wants(1)) call.out(1, broadcast_to(call.builder().scalar(DType::kBool, 1), call.type(0).dims));
}

// The bias has the inner axes, or broadcasts along the axes before `axis`.
void build_bias_softmax(Call& call) {
  Expr x = call.in(0), bias = call.in(1);
  int64_t axis = call.axis(call.i64("axis", 1), x.rank());
  if (call.i64("is_inner_broadcast", 1) == 0 && x.valid() && bias.valid() && bias.rank() < x.rank()) {
    std::vector<Dim> dims(x.rank(), Dim(1));
    std::copy(bias.dims().begin(), bias.dims().end(), dims.end() - static_cast<int64_t>(bias.rank()));
    bias = reshape(bias, dims);
  }
  Expr sum = x + bias;
  if (sum.valid()) call.out(0, softmax_from_axis(call, "softmax", sum, axis));
}

// ---- products ----

// An activation by its ONNX name, with the defaults of its numbers; NAN: it has no such number.
struct Activation {
  std::string_view name, op;
  double alpha = NAN, beta = NAN, gamma = NAN;
};
constexpr Activation kActivations[] = {{"Relu", "relu"},
                                       {"Tanh", "tanh"},
                                       {"Sigmoid", "sigmoid"},
                                       {"Softplus", "softplus"},
                                       {"Softsign", "softsign"},
                                       {"Elu", "elu", 1},
                                       {"LeakyRelu", "leaky_relu", 0.01},
                                       {"ThresholdedRelu", "thresholded_relu", 1},
                                       {"HardSigmoid", "hard_sigmoid", 0.2, 0.5},
                                       {"Selu", "selu", 1, NAN, 1}};

Expr activated(Call& call, Expr y) {
  std::string_view name = call.text("activation", "");
  for (const char* maybe_unused : {"activation_alpha", "activation_beta", "activation_gamma", "activation_axis"})
    call.ignore(maybe_unused);
  if (name.empty()) return y;
  auto alpha = [&](double fallback) { return call.f64("activation_alpha", fallback); };
  auto beta = [&](double fallback) { return call.f64("activation_beta", fallback); };
  if (name == "ScaledTanh") return tanh(y * beta(0.5)) * alpha(1);
  if (name == "ParametricSoftplus") return call.op("softplus", {y * beta(0.5)}) * alpha(1);
  const auto* found = std::ranges::find(kActivations, name, &Activation::name);
  if (found == std::end(kActivations)) return call.fail(Code::kUnsupported, format("the activation {}", name)), y;
  NamedAttrs attrs;
  if (!std::isnan(found->alpha)) attrs.emplace_back("alpha", alpha(found->alpha));
  if (!std::isnan(found->beta)) attrs.emplace_back("beta", beta(found->beta));
  if (!std::isnan(found->gamma)) attrs.emplace_back("gamma", call.f64("activation_gamma", found->gamma));
  return call.op(found->op, {y}, attrs);
}

// [a, B.., b] as [B.., a, b]: the batch stands between the two axes of the matrix.
Expr batch_first(Expr x) {
  Axes perm;
  for (int64_t i = 1; i + 1 < static_cast<int64_t>(x.rank()); i++) perm.push_back(i);
  perm.push_back(0);
  perm.push_back(static_cast<int64_t>(x.rank()) - 1);
  return transpose(x, perm);
}

void build_fused_matmul(Call& call) {
  Expr a = call.in(0), b = call.in(1);
  if (!a.valid() || !b.valid()) return;
  if (call.i64("transBatchA", 0) != 0) a = batch_first(a);
  if (call.i64("transBatchB", 0) != 0) b = batch_first(b);
  Transposed turned{call.i64("transA", 0) != 0 && a.rank() > 1, call.i64("transB", 0) != 0 && b.rank() > 1};
  double alpha = call.f64("alpha", 1);
  auto product = [&](Expr rows, Expr columns) {
    Expr y = matmul(rows, columns, turned);
    return alpha == 1 ? y : y * alpha;
  };
  call.out(0, activated(call, matmul_with_vectors(a, b, product)));
}

void build_fused_gemm(Call& call) {
  double alpha = call.f64("alpha", 1), beta = call.f64("beta", 1);
  Expr y = matmul(call.in(0), call.in(1), {.a = call.i64("transA", 0) != 0, .b = call.i64("transB", 0) != 0});
  if (alpha != 1) y = y * alpha;
  if (call.has(2)) y = y + (beta == 1 ? call.in(2) : call.in(2) * beta);
  call.out(0, activated(call, y));
}

void build_gemm_fast_gelu(Call& call) {
  Expr y = matmul(call.in(0), call.in(1));
  call.out(0, call.op("gelu", {call.has(2) ? y + call.in(2) : y}, {{"approx", "tanh"}}));
}

// [N, K]: the weights of a MatMulNBits whose columns say which block they belong to.
Expr weights_by_group(Call& call, int64_t bits) {
  Expr x = call.in(0), packed = call.in(1), zero = call.in(3);
  if (!x.valid() || !packed.valid() || packed.rank() != 3) return call.fail(Code::kShape, "B must have rank 3"), packed;
  Dim rows = packed.dim(0), blocks = packed.dim(1), columns = x.dim(-1);
  auto unpacked = [&](Expr p) { return bits == 8 ? p : call.op("unpack_bits", {p}, {{"bits", bits}}); };
  Expr group = slice(call.in(4), 0, 0, columns);
  auto each = [&](Expr p) { return gather(cast(p, x.dtype()), group, 1); };
  Expr numbers = cast(slice(reshape(unpacked(packed), {rows, Dim(-1)}), 1, 0, columns), x.dtype());
  if (zero && zero.valid() && zero.dtype() == DType::kU8)
    zero = slice(unpacked(reshape(zero, {rows, Dim(-1)})), 1, 0, blocks);
  numbers = zero ? numbers - each(reshape(zero, {rows, blocks})) : numbers - static_cast<double>(1 << (bits - 1));
  return numbers * each(reshape(call.in(2), {rows, blocks}));
}

// Weights of a few bits, in blocks along K. With g_idx a column may belong to any of the blocks.
void build_matmul_nbits(Call& call) {
  for (const char* unused : {"accuracy_level", "K", "N"}) call.ignore(unused);
  if (call.i64("weight_prepacked", 0) != 0)
    return call.fail(Code::kUnsupported, "'weight_prepacked', weights in the order of one kernel");
  int64_t bits = packed_bits(call, "bits", 4), block = call.i64("block_size", 0);
  if (call.has(4))
    return call.out(
        0, call.op("linear", {call.in(0), weights_by_group(call, bits), call.in(5)}, {{"transpose_w", int64_t{1}}}));
  call.out(0, call.op("matmul_nbits", {call.in(0), call.in(1), call.in(2), call.in(3), call.in(5)},
                      {{"bits", bits}, {"block", block}}));
}

// The meaning of 4 bits: numbers with 3 bits of exponent (FP4), or quantiles of a normal distribution (NF4).
constexpr float kBnb4[][16] = {
    {0, 5.208333333e-03F, 0.66666667F, 1, 0.33333333F, 0.5F, 0.16666667F, 0.25F, -0.0F, -5.208333333e-03F, -0.66666667F,
     -1, -0.33333333F, -0.5F, -0.16666667F, -0.25F},
    {-1, -0.6961928009986877F, -0.5250730514526367F, -0.39491748809814453F, -0.28444138169288635F,
     -0.18477343022823334F, -0.09105003625154495F, 0, 0.07958029955625534F, 0.16093020141124725F, 0.24611230194568634F,
     0.33791524171829224F, 0.44070982933044434F, 0.5626170039176941F, 0.7229568362236023F, 1}};

// Weights [N, K] in blocks over the flattened matrix, the first of two numbers in the high bits.
void build_matmul_bnb4(Call& call) {
  call.ignore("training_mode");
  int64_t rows = call.i64("N", 0), columns = call.i64("K", 0), block = call.i64("block_size", 0);
  int64_t type = call.i64("quant_type", 1), turned = call.i64("transB", 1);
  Expr packed = call.in(1), scale = call.in(2);
  if (!packed.valid() || !scale.valid() || packed.rank() != 1 || scale.rank() != 1)
    return call.fail(Code::kShape, "B and absmax must have rank 1");
  if (rows < 1 || columns < 1 || block < 1 || type < 0 || type > 1)
    return call.fail(Code::kData, "'N', 'K', 'block_size' or 'quant_type' is out of range");
  auto table = Tensor::create(DType::kF32, std::array<int64_t, 1>{16});
  if (!table.ok()) return call.fail(table.status());
  std::copy(std::begin(kBnb4[type]), std::end(kBnb4[type]), table->as<float>());
  Expr pairs = reshape(call.op("unpack_bits", {packed}, {{"bits", int64_t{4}}}), {Dim(-1), Dim(2)});
  Expr swapped[] = {slice(pairs, 1, 1, 2), slice(pairs, 1, 0, 1)};
  Dim count = Dim(rows) * Dim(columns), held = scale.dim(0) * Dim(block);
  Expr bits = slice(reshape(concat(swapped, 1), {Dim(-1)}), 0, 0, count);
  Expr numbers = gather(call.builder().constant(*table), cast(bits, DType::kI32), 0);
  Expr scales = reshape(broadcast_to(unsqueeze(scale, 1), {scale.dim(0), Dim(block)}), {held});
  Expr b = reshape(cast(numbers, scale.dtype()) * slice(scales, 0, 0, count), {Dim(rows), Dim(columns)});
  call.out(0, matmul(call.in(0), b, {.b = turned != 0}));
}

// ---- the rest ----

void build_expand_dims(Call& call) {
  std::vector<int64_t> axis = call.numbers(1, "axis");
  Expr x = call.in(0);
  if (axis.size() != 1) return call.fail(Code::kData, "'axis' must be one number");
  call.out(0, unsqueeze(x, call.axis(axis[0], x.rank() + 1)));
}

// The distances between every row of a and every row of b: |a|^2 + |b|^2 - 2 a b, as ONNX Runtime computes them, which
// is a product instead of all differences. So the square of a distance has an error in proportion to |a|^2 + |b|^2, and
// equal rows may be a little apart; never less than 0.
void build_cdist(Call& call) {
  std::string_view metric = call.text("metric", "sqeuclidean");
  Expr a = call.in(0), b = call.in(1);
  if (!a.valid() || !b.valid()) return;
  if (a.rank() != 2 || b.rank() != 2) return call.fail(Code::kShape, "its inputs must have rank 2");
  if (metric != "sqeuclidean" && metric != "euclidean")
    return call.fail(Code::kUnsupported, "the metric " + std::string(metric));
  Expr a_square = sum(a * a, {1}), b_square = reshape(sum(b * b, {1}), {Dim(1), b.dim(0)});
  Expr square = maximum(matmul(a * -2, b, {.b = true}) + b_square + a_square, 0);
  call.out(0, metric == "euclidean" ? sqrt(square) : square);
}

// Rows of a table; how it is trained has no meaning here.
void build_torch_embedding(Call& call) {
  call.out(0, gather(call.in(0), call.in(1), 0));
}

// Every stretch of `size` elements along an axis, `step` apart: a last axis of its own.
void build_unfold(Call& call) {
  int64_t size = call.i64("size", 0), step = call.i64("step", 1);
  Expr x = call.in(0);
  if (!x.valid() || x.rank() == 0) return call.fail(Code::kShape, "its input has no axes");
  if (size < 1 || step < 1) return call.fail(Code::kData, "'size' and 'step' must be 1 or more");
  int64_t axis = call.axis(call.i64("dim", -1), x.rank());
  Builder& b = call.builder();
  Dim count = floor_div(x.dim(axis) - Dim(size), Dim(step)) + Dim(1);
  Expr begin = unsqueeze(iota(b, {count}, 0, DType::kI64) * static_cast<double>(step), 1);
  Expr y = gather(x, begin + iota(b, {Dim(size)}, 0, DType::kI64), axis);
  if (!y.valid()) return;
  Axes to_last;
  for (int64_t i = 0; i < static_cast<int64_t>(y.rank()); i++)
    if (i != axis + 1) to_last.push_back(i);
  to_last.push_back(axis + 1);
  call.out(0, transpose(y, to_last));
}

// The angles are those of all heads.
void build_gemma_rope(Call& call) {
  Expr angles = call.in(0);
  if (!angles.valid() || angles.rank() != 3) return call.fail(Code::kShape, "'emb' must have rank 3");
  DType dtype = call.type(1).dtype;
  Expr across = unsqueeze(angles, 1);
  Expr c = cast(unary(Op::kCos, across), dtype), s = cast(unary(Op::kSin, across), dtype);
  call.out(0, call.in(1) * c + call.in(2) * s);
  call.out(1, call.in(3) * c + call.in(4) * s);
}

// Pairs along the last axis are complex numbers.
void build_complex_mul(Call& call) {
  Expr a = call.in(0), b = call.in(1);
  if (!a.valid() || !b.valid()) return;
  Expr re_a = slice(a, -1, 0, 1), im_a = slice(a, -1, 1, 2), re_b = slice(b, -1, 0, 1), im_b = slice(b, -1, 1, 2);
  if (call.kind().op == "conj") im_b = -im_b;
  std::vector<Expr> parts{re_a * re_b - im_a * im_b, re_a * im_b + im_a * re_b};
  call.out(0, concat(parts, -1));
}

constexpr NodeKind kKinds[] = {
    microsoft("SkipLayerNormalization", build_skip_norm, "residual_layer_norm"),
    microsoft("SkipSimplifiedLayerNormalization", build_skip_norm, "residual_rms_norm"),
    microsoft("EmbedLayerNormalization", build_embed_layer_norm),
    microsoft("GroupNorm", build_group_norm),
    microsoft("SkipGroupNorm", build_group_norm),
    microsoft("Gelu", build_gelu),
    microsoft("BiasGelu", build_gelu),
    microsoft("FastGelu", build_gelu),
    microsoft("QuickGelu", build_quick_gelu),
    microsoft("BiasSplitGelu", build_bias_split_gelu),
    microsoft("BiasAdd", build_bias_add),
    microsoft("BiasDropout", build_bias_dropout),
    microsoft("BiasSoftmax", build_bias_softmax),
    microsoft("FusedMatMul", build_fused_matmul),
    microsoft("FusedMatMulActivation", build_fused_matmul),
    microsoft("GemmFastGelu", build_gemm_fast_gelu),
    microsoft("GemmaRotaryEmbedding", build_gemma_rope),
    microsoft("TransposeMatMul", build_fused_matmul),
    microsoft("FusedGemm", build_fused_gemm),
    microsoft("MatMulNBits", build_matmul_nbits),
    microsoft("MatMulBnb4", build_matmul_bnb4),
    microsoft("ExpandDims", build_expand_dims),
    microsoft("TorchEmbedding", build_torch_embedding),
    microsoft("UnfoldTensor", build_unfold),
    microsoft("CDist", build_cdist),
    microsoft("ComplexMul", build_complex_mul),
    microsoft("ComplexMulConj", build_complex_mul, "conj"),
};

}  // namespace

std::span<const NodeKind> contrib_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
