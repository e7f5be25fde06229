// SPDX-License-Identifier: Apache-2.0
// The table of ops: one row a line. What several rows do is a function above it.
#include "op_rows.h"

namespace bench {
namespace {

OnnxWriter::Attributes axis(int64_t axis) {
  return {OnnxWriter::attribute("axis", axis)};
}

void unary(OneOp& it, const char* op) {
  it.node(op, {it.input({1024, 1024})});
}
void layer_norm(OneOp& it, int64_t rows, int64_t n) {
  it.node("LayerNormalization", {it.input({rows, n}), it.weight({n}), it.weight({n})});
}
void norm_of_channels(OneOp& it, const char* op, int weights, const Dims& x) {
  OnnxWriter::Names in{it.input(x)};
  for (int i = 0; i < weights; ++i) in.push_back(it.weight({x[1]}));
  it.node(op, in);
}
void reduce(OneOp& it, const char* op, const Dims& x, const Dims& axes) {
  it.node(op, {it.input(x)}, {OnnxWriter::attribute("axes", axes)});
}
void extreme(OneOp& it, const Dims& x) {
  it.cast(it.step("ArgMax", {it.input(x)}, axis(-1)));
}
void first(OneOp& it, const Dims& x, int64_t k) {
  it.node("TopK", {it.input(x), it.numbers({k})}, {}, "", 2);
}
// To halves and back.
void halves(OneOp& it, const Dims& x) {
  constexpr int64_t kF16 = 10;
  it.cast(it.step("Cast", {it.input(x)}, {OnnxWriter::attribute("to", kF16)}));
}
void diagonals(OneOp& it, int64_t items, int64_t n) {
  it.node("Einsum", {it.input({items, n, n})}, {OnnxWriter::attribute("equation", std::string_view("bii->bi"))});
}
void boxes(OneOp& it, int64_t classes, int64_t n) {
  it.cast(it.step("NonMaxSuppression",
                  {it.input({1, n, 4}), it.input({1, classes, n}), it.numbers({20}), it.number(0.5F)}));
}
void transposed(OneOp& it, const Dims& x, const Dims& perm) {
  it.node("Transpose", {it.input(x)}, {OnnxWriter::attribute("perm", perm)});
}
void columns(OneOp& it, int64_t n) {
  it.node("Concat", {it.input({n, 1}), it.input({n, 1}), it.input({n, 1}), it.input({n, 1})}, axis(1));
}

// ---- products ----

void product(OneOp& it, int64_t m, int64_t k, int64_t n) {
  it.node("MatMul", {it.input({m, k}), it.weight({k, n})});
}
void few_bits(OneOp& it, int64_t m, int64_t k, int64_t n) {
  constexpr int64_t kBlock = 32;
  OnnxWriter::Attributes attributes{OnnxWriter::attribute("K", k), OnnxWriter::attribute("N", n),
                                    OnnxWriter::attribute("bits", int64_t{4}),
                                    OnnxWriter::attribute("block_size", kBlock)};
  it.node("MatMulNBits", {it.input({m, k}), it.bytes({n, k / kBlock, kBlock / 2}), it.weight({n * k / kBlock})},
          attributes, "com.microsoft");
}
void recurrent(OneOp& it, const char* op, int64_t gates, int64_t steps, int64_t width) {
  const Dims weights{1, gates * width, width};
  it.node(op, {it.input({steps, 1, width}), it.weight(weights), it.weight(weights), it.weight({1, 2 * gates * width})},
          {OnnxWriter::attribute("hidden_size", width)});
}

void attention(OneOp& it, int64_t length, int64_t heads, int64_t depth) {
  const Dims dims{1, length, heads * depth};
  it.node("MultiHeadAttention", {it.input(dims), it.input(dims), it.input(dims)},
          {OnnxWriter::attribute("num_heads", heads)}, "com.microsoft");
}

// ---- windows ----

// All axes have the same stride, pads and dilation.
struct Steps {
  int64_t stride, pad, dilation = 1, groups = 1;
};
// Of one to three axes. w: the dims of the weights, or of the window where there are none.
OnnxWriter::Attributes window(size_t axes, const Dims& w, const Steps& steps) {
  OnnxWriter::Attributes attributes{
      OnnxWriter::attribute("kernel_shape", Dims(w.end() - static_cast<std::ptrdiff_t>(axes), w.end())),
      OnnxWriter::attribute("strides", Dims(axes, steps.stride)),
      OnnxWriter::attribute("pads", Dims(2 * axes, steps.pad))};
  if (steps.dilation > 1) attributes.push_back(OnnxWriter::attribute("dilations", Dims(axes, steps.dilation)));
  if (steps.groups > 1) attributes.push_back(OnnxWriter::attribute("group", steps.groups));
  return attributes;
}
void windows(OneOp& it, const char* op, const Dims& x, const Dims& w, const Steps& steps) {
  const size_t axes = x.size() - 2;
  OnnxWriter::Names in{it.input(x)};
  if (w.size() > axes) in.push_back(it.weight(w));
  it.node(op, in, window(axes, w, steps));
}
void conv(OneOp& it, const Dims& x, const Dims& w, const Steps& steps) {
  windows(it, "Conv", x, w, steps);
}
void conv_with_bias(OneOp& it, const Dims& x, const Dims& w, const Steps& steps) {
  it.node("Conv", {it.input(x), it.weight(w), it.weight({w[0]})}, window(x.size() - 2, w, steps));
}
void twice(OneOp& it, const Dims& x, const char* mode) {
  OnnxWriter::Attributes attributes{OnnxWriter::attribute("mode", std::string_view(mode))};
  Dims sizes = x;
  sizes[2] *= 2, sizes[3] *= 2;
  it.node("Resize", {it.input(x), "", "", it.numbers(sizes)}, attributes);
}

void aligned(OneOp& it, const Dims& x, int64_t boxes, int64_t bins, const char* mode) {
  std::string images = it.step("Reshape", {it.numbers(Dims(static_cast<size_t>(boxes), 0)), it.numbers({boxes})});
  it.node("RoiAlign", {it.input(x), it.input({boxes, 4}), images},
          {OnnxWriter::attribute("output_height", bins), OnnxWriter::attribute("output_width", bins),
           OnnxWriter::attribute("sampling_ratio", int64_t{2}), OnnxWriter::attribute("mode", std::string_view(mode))});
}

// A convolution with bias and relu. Depthwise: as many groups as channels.
enum class Mixes : uint8_t { kChannels, kEachChannelAlone };

std::string layer(OneOp& it, const std::string& x, int64_t channels, int64_t filters, int64_t taps,
                  Mixes mixes = Mixes::kChannels) {
  bool is_depthwise = mixes == Mixes::kEachChannelAlone;
  const Dims w{filters, is_depthwise ? 1 : channels, taps, taps};
  std::string y = it.step("Conv", {x, it.weight(w), it.weight({filters})},
                          window(2, w, {1, taps / 2, 1, is_depthwise ? channels : 1}));
  return it.step("Relu", {y});
}
// Several layers, between which a runtime may keep a layout of its own.
template <class Layer>
void stack(OneOp& it, const Dims& x, int times, Layer layer) {
  std::string y = it.input(x);
  for (int i = 0; i < times; ++i) y = layer(y);
  it.node("Identity", {y});
}
void same_layers(OneOp& it, int64_t channels, int64_t size, int64_t taps, Mixes mixes = Mixes::kChannels) {
  stack(it, {1, channels, size, size}, 4,
        [&](const std::string& x) { return layer(it, x, channels, channels, taps, mixes); });
}
void depthwise_layers(OneOp& it, int64_t channels, int64_t size, int64_t taps) {
  same_layers(it, channels, size, taps, Mixes::kEachChannelAlone);
}
// Of residual networks.
void bottlenecks(OneOp& it, int64_t channels, int64_t size) {
  const int64_t inner = channels / 4;
  stack(it, {1, channels, size, size}, 3, [&](const std::string& x) {
    std::string y = layer(it, layer(it, x, channels, inner, 1), inner, inner, 3);
    return it.step("Add", {layer(it, y, inner, channels, 1), x});
  });
}
// Of networks for phones.
void inverted_bottlenecks(OneOp& it, int64_t channels, int64_t size, int64_t taps) {
  const int64_t inner = 6 * channels;
  stack(it, {1, channels, size, size}, 3, [&](const std::string& x) {
    std::string y = layer(it, layer(it, x, channels, inner, 1), inner, inner, taps, Mixes::kEachChannelAlone);
    return it.step("Add", {layer(it, y, inner, channels, 1), x});
  });
}

// A convolution of channels that lie behind each other, as exported from frameworks where they do.
void channels_last(OneOp& it, const Dims& x, const Dims& w, const Steps& steps) {
  std::string planes = it.step("Transpose", {it.input(x)}, {OnnxWriter::attribute("perm", Dims{0, 3, 1, 2})});
  std::string y = it.step("Conv", {planes, it.weight(w), it.weight({w[0]})}, window(2, w, steps));
  it.node("Transpose", {y}, {OnnxWriter::attribute("perm", Dims{0, 2, 3, 1})});
}

// ---- 8-bit numbers ----

std::string quantized(OneOp& it, const Dims& dims) {
  return it.step("QuantizeLinear", {it.input(dims), it.number(0.005F), it.zero_byte(3)});
}
// An op of com.microsoft on one quantised tensor, or on two of these dims.
void on_bytes(OneOp& it, const char* op, const Dims& a, const Dims& b = {}) {
  OnnxWriter::Names in{quantized(it, a), it.number(0.0131F), it.zero_byte(7)};
  if (!b.empty()) in.insert(in.end(), {quantized(it, b), it.number(0.0217F), it.zero_byte(9)});
  in.insert(in.end(), {it.number(0.0307F), it.zero_byte(11)});
  it.cast(it.step(op, in, {}, "com.microsoft"));
}
void quantized_product(OneOp& it, int64_t m, int64_t k, int64_t n) {
  it.cast(it.step("MatMulInteger", {quantized(it, {m, k}), it.bytes({k, n}), it.zero_byte(3), it.zero_byte(128)}));
}
void quantized_inputs(OneOp& it, const Dims& a, const Dims& b) {
  std::string first = quantized(it, a), second = quantized(it, b);
  it.cast(it.step("MatMulInteger", {first, second, it.zero_byte(3), it.zero_byte(3)}));
}
void quantized_channels_last(OneOp& it, const Dims& x, const Dims& w) {
  OnnxWriter::Attributes attributes = window(2, w, {1, w[2] / 2});
  attributes.push_back(OnnxWriter::attribute("channels_last", int64_t{1}));
  it.cast(it.step("QLinearConv",
                  {quantized(it, x), it.number(0.005F), it.zero_byte(3), it.bytes(w), it.number(0.01F),
                   it.zero_byte(128), it.number(0.5F), it.zero_byte(128)},
                  attributes, "com.microsoft"));
}
void there_and_back(OneOp& it, const Dims& dims) {
  it.node("DequantizeLinear", {quantized(it, dims), it.number(0.005F), it.zero_byte(3)});
}

// ---- those that are too long for a line of the table ----

void joined(OneOp& it) {
  it.node("Concat", {it.input({64, 512}), it.input({64, 256}), it.input({64, 768})}, axis(1));
}
void picked_columns(OneOp& it) {
  it.node("Gather", {it.input({256, 1000}), it.numbers({5, 900, 17, 333, 2, 64})}, axis(1));
}
// An integer in [0, n) for each element.
std::string places(OneOp& it, const Dims& dims, int64_t n) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count_of(dims); ++i) values.push_back(i * 7919 % n);
  return it.step("Reshape", {it.numbers(values), it.numbers(dims)});
}
void scattered(OneOp& it, const char* op, const Dims& indices, const char* reduction = "add") {
  it.node(op, {it.input({1000, 64}), places(it, indices, 1000), it.input({2000, 64})},
          {OnnxWriter::attribute("reduction", std::string_view(reduction))});
}
void every_second(OneOp& it) {
  it.node("Slice", {it.input({64, 56, 56}), it.numbers({0}), it.numbers({56}), it.numbers({2}), it.numbers({2})});
}
void blocks(OneOp& it, const char* op, const Dims& x) {
  it.node(op, {it.input(x)}, {OnnxWriter::attribute("blocksize", int64_t{2})});
}
void mirrored(OneOp& it, const Dims& x, int64_t pad) {
  it.node("Pad", {it.input(x), it.numbers({0, 0, pad, pad, 0, 0, pad, pad})},
          {OnnxWriter::attribute("mode", std::string_view("reflect"))});
}
void nonzero(OneOp& it) {
  it.cast(it.step("NonZero", {it.step("Greater", {it.input({256, 256}), it.number(1)})}));
}
void distances(OneOp& it) {
  it.node("CDist", {it.input({256, 64}), it.input({256, 64})},
          {OnnxWriter::attribute("metric", std::string_view("euclidean"))}, "com.microsoft");
}
void where(OneOp& it) {
  std::string x = it.input({512, 512});
  it.node("Where", {it.step("Greater", {x, it.number(0.5F)}), x, it.number(-1e9F)});
}

// clang-format off
const OpRow kRows[] = {
    // elementwise
    {"Add, rows", [](OneOp& it) { it.node("Add", {it.input({4096, 768}), it.input({768})}); }},
    {"Add, one row", [](OneOp& it) { it.node("Add", {it.input({1, 128}), it.input({1, 128})}); }},
    {"Mul, columns", [](OneOp& it) { it.node("Mul", {it.input({4096, 768}), it.input({4096, 1})}); }},
    {"Div", [](OneOp& it) { it.node("Div", {it.input({1024, 1024}), it.input({1024, 1024})}); }},
    {"Pow 1.7", [](OneOp& it) { it.node("Pow", {it.input({512, 512}), it.number(1.7F)}); }},
    {"Where", where},
    {"Exp", [](OneOp& it) { unary(it, "Exp"); }},
    {"Log", [](OneOp& it) { unary(it, "Log"); }},
    {"Erf", [](OneOp& it) { unary(it, "Erf"); }},
    {"Tanh", [](OneOp& it) { unary(it, "Tanh"); }},
    {"Sigmoid", [](OneOp& it) { unary(it, "Sigmoid"); }},
    {"Sqrt", [](OneOp& it) { unary(it, "Sqrt"); }},
    {"Sin", [](OneOp& it) { unary(it, "Sin"); }},
    {"HardSwish", [](OneOp& it) { unary(it, "HardSwish"); }},
    {"Gelu", [](OneOp& it) { it.node("Gelu", {it.input({512, 512})}, {}, "com.microsoft"); }},

    // softmax and norms
    {"Softmax", [](OneOp& it) { it.node("Softmax", {it.input({64, 128, 512})}, axis(-1)); }},
    {"Softmax, short rows", [](OneOp& it) { it.node("Softmax", {it.input({4096, 16})}, axis(-1)); }},
    {"Softmax, windows", [](OneOp& it) { it.node("Softmax", {it.input({64, 3, 49, 49})}, axis(-1)); }},
    {"Softmax, inner", [](OneOp& it) { it.node("Softmax", {it.input({64, 128, 64})}, axis(1)); }},
    {"Softmax, few behind", [](OneOp& it) { it.node("Softmax", {it.input({64, 21, 16})}, axis(1)); }},
    {"LayerNormalization", [](OneOp& it) { layer_norm(it, 512, 768); }},
    {"LayerNorm, short rows", [](OneOp& it) { layer_norm(it, 3136, 96); }},
    {"LayerNorm, a long row", [](OneOp& it) { layer_norm(it, 1, 4096); }},
    {"InstanceNormalization", [](OneOp& it) { norm_of_channels(it, "InstanceNormalization", 2, {1, 64, 56, 56}); }},
    {"BatchNormalization", [](OneOp& it) { norm_of_channels(it, "BatchNormalization", 4, {1, 64, 56, 56}); }},
    {"BatchNorm, audio", [](OneOp& it) { norm_of_channels(it, "BatchNormalization", 4, {2, 64, 1000}); }},
    {"LRN", [](OneOp& it) { it.node("LRN", {it.input({1, 64, 56, 56})}, {OnnxWriter::attribute("size", int64_t{5})}); }},

    // reductions, and what is chosen by order
    {"ReduceMean, rows", [](OneOp& it) { reduce(it, "ReduceMean", {1024, 1024}, {1}); }},
    {"ReduceMean, short rows", [](OneOp& it) { reduce(it, "ReduceMean", {65536, 4}, {1}); }},
    {"ReduceMean, middle", [](OneOp& it) { reduce(it, "ReduceMean", {16, 128, 128}, {1}); }},
    {"ReduceMean, columns", [](OneOp& it) { reduce(it, "ReduceMean", {1024, 1024}, {0}); }},
    {"ReduceMax, rows", [](OneOp& it) { reduce(it, "ReduceMax", {2048, 128}, {1}); }},
    {"ReduceMax, short rows", [](OneOp& it) { reduce(it, "ReduceMax", {8400, 80}, {1}); }},
    {"ReduceSum, short rows", [](OneOp& it) { it.node("ReduceSum", {it.input({4096, 20}), it.numbers({1})}); }},
    {"ReduceMax, images", [](OneOp& it) { reduce(it, "ReduceMax", {8, 64, 56, 56}, {2, 3}); }},
    {"ReduceL2", [](OneOp& it) { reduce(it, "ReduceL2", {512, 512}, {0, 1}); }},
    {"ReduceL2, rows", [](OneOp& it) { reduce(it, "ReduceL2", {512, 512}, {1}); }},
    {"ReduceL1, rows", [](OneOp& it) { reduce(it, "ReduceL1", {512, 512}, {1}); }},
    {"ReduceMax, two axes", [](OneOp& it) { reduce(it, "ReduceMax", {30, 40, 50, 7}, {1, 3}); }},
    {"CumSum", [](OneOp& it) { it.node("CumSum", {it.input({512, 1024}), it.numbers({1})}); }},
    {"CumSum, middle", [](OneOp& it) { it.node("CumSum", {it.input({64, 128, 64}), it.numbers({1})}); }},
    {"Hardmax", [](OneOp& it) { it.node("Hardmax", {it.input({64, 1000})}, axis(-1)); }},
    {"ArgMax, rows", [](OneOp& it) { extreme(it, {2048, 128}); }},
    {"ArgMax, short rows", [](OneOp& it) { extreme(it, {65536, 4}); }},
    {"ArgMax, rows of 16", [](OneOp& it) { extreme(it, {4096, 16}); }},
    {"ArgMax, rows of 48", [](OneOp& it) { extreme(it, {4096, 48}); }},
    {"Hardmax, short rows", [](OneOp& it) { it.node("Hardmax", {it.input({4096, 16})}, axis(-1)); }},
    {"TopK 5", [](OneOp& it) { first(it, {64, 1000}, 5); }},
    {"TopK 10, a long row", [](OneOp& it) { first(it, {1, 32000}, 10); }},
    {"TopK 100", [](OneOp& it) { first(it, {64, 8400}, 100); }},
    {"TopK 1000", [](OneOp& it) { first(it, {1, 100000}, 1000); }},
    {"TopK, all", [](OneOp& it) { first(it, {64, 1000}, 1000); }},
    {"TopK 5, short rows", [](OneOp& it) { first(it, {8400, 16}, 5); }},
    {"NonMaxSuppression 1", [](OneOp& it) { boxes(it, 1, 1000); }},
    {"NonMaxSuppression 80", [](OneOp& it) { boxes(it, 80, 1000); }},
    {"NonZero", nonzero},

    // data movement
    {"Transpose, heads", [](OneOp& it) { transposed(it, {8, 128, 12, 64}, {0, 2, 1, 3}); }},
    {"Transpose, matrix", [](OneOp& it) { transposed(it, {1024, 1024}, {1, 0}); }},
    {"Transpose, channels", [](OneOp& it) { transposed(it, {4, 64, 56, 56}, {0, 2, 3, 1}); }},
    {"Transpose, columns", [](OneOp& it) { transposed(it, {65536, 3}, {1, 0}); }},
    {"Concat", joined},
    {"Concat, channels", [](OneOp& it) { it.node("Concat", {it.input({1, 64, 56, 56}), it.input({1, 64, 56, 56})}, axis(1)); }},
    {"Concat, columns", [](OneOp& it) { columns(it, 8400); }},
    {"Gather, columns", picked_columns},
    {"ScatterElements, add", [](OneOp& it) { scattered(it, "ScatterElements", {2000, 64}); }},
    {"ScatterND, add", [](OneOp& it) { scattered(it, "ScatterND", {2000, 1}); }},
    {"ScatterElements", [](OneOp& it) { scattered(it, "ScatterElements", {2000, 64}, "none"); }},
    {"ScatterND, max", [](OneOp& it) { scattered(it, "ScatterND", {2000, 1}, "max"); }},
    {"Cast, bytes", [](OneOp& it) { it.cast(it.byte_input({1, 3, 224, 224})); }},
    {"Cast, halves", [](OneOp& it) { halves(it, {128, 3072}); }},
    {"Einsum, diagonals", [](OneOp& it) { diagonals(it, 64, 200); }},
    {"Slice, steps", every_second},
    {"Pad", [](OneOp& it) { it.node("Pad", {it.input({4, 64, 56, 56}), it.numbers({0, 0, 1, 1, 0, 0, 1, 1})}); }},
    {"Pad, channels", [](OneOp& it) { it.node("Pad", {it.input({1, 32, 56, 56}), it.numbers({0, 0, 0, 0, 0, 32, 0, 0})}); }},
    {"Pad, reflect", [](OneOp& it) { mirrored(it, {1, 32, 64, 64}, 3); }},
    {"Tile", [](OneOp& it) { it.node("Tile", {it.input({128, 128}), it.numbers({4, 4})}); }},
    {"DepthToSpace", [](OneOp& it) { blocks(it, "DepthToSpace", {1, 256, 64, 64}); }},
    {"SpaceToDepth", [](OneOp& it) { blocks(it, "SpaceToDepth", {1, 64, 64, 64}); }},

    // products
    {"MatMul 1 768 3072", [](OneOp& it) { product(it, 1, 768, 3072); }},
    {"MatMul 4 768 768", [](OneOp& it) { product(it, 4, 768, 768); }},
    {"MatMul 16 768 768", [](OneOp& it) { product(it, 16, 768, 768); }},
    {"MatMul 128 768 768", [](OneOp& it) { product(it, 128, 768, 768); }},
    {"MatMul 512 512 512", [](OneOp& it) { product(it, 512, 512, 512); }},
    {"MatMul 4096 64 3", [](OneOp& it) { product(it, 4096, 64, 3); }},
    {"MatMul, batches", [](OneOp& it) { it.node("MatMul", {it.input({12, 128, 64}), it.input({12, 64, 128})}); }},
    {"MatMul, decode", [](OneOp& it) { it.node("MatMul", {it.input({12, 1, 64}), it.input({12, 64, 128})}); }},
    {"MatMul, windows", [](OneOp& it) { it.node("MatMul", {it.input({64, 49, 32}), it.input({64, 32, 49})}); }},
    {"CDist", distances},
    {"MatMulNBits, 1 row", [](OneOp& it) { few_bits(it, 1, 4096, 4096); }},
    {"MatMulNBits, 4 rows", [](OneOp& it) { few_bits(it, 4, 2048, 2048); }},
    {"MatMulNBits, 128 rows", [](OneOp& it) { few_bits(it, 128, 1024, 1024); }},
    {"MatMulNBits, 512 rows", [](OneOp& it) { few_bits(it, 512, 1024, 1024); }},
    {"LSTM, a step", [](OneOp& it) { recurrent(it, "LSTM", 4, 1, 256); }},
    {"LSTM, 50 steps", [](OneOp& it) { recurrent(it, "LSTM", 4, 50, 128); }},
    {"GRU, 50 steps", [](OneOp& it) { recurrent(it, "GRU", 3, 50, 128); }},

    {"Attention 128", [](OneOp& it) { attention(it, 128, 12, 32); }},
    {"Attention 1024", [](OneOp& it) { attention(it, 1024, 8, 64); }},

    // convolutions
    {"Layers 1x1, 112", [](OneOp& it) { same_layers(it, 32, 112, 1); }},
    {"Layers 3x3, 56", [](OneOp& it) { same_layers(it, 64, 56, 3); }},
    {"Layers 3x3, 14", [](OneOp& it) { same_layers(it, 256, 14, 3); }},
    {"Layers depthwise 3x3, 56", [](OneOp& it) { depthwise_layers(it, 144, 56, 3); }},
    {"Layers depthwise 3x3, 14", [](OneOp& it) { depthwise_layers(it, 512, 14, 3); }},
    {"Layers depthwise 5x5, 28", [](OneOp& it) { depthwise_layers(it, 240, 28, 5); }},
    {"Layers depthwise 7x7, 56", [](OneOp& it) { depthwise_layers(it, 96, 56, 7); }},
    {"Layers depthwise 9x9, 32", [](OneOp& it) { depthwise_layers(it, 256, 32, 9); }},
    {"Bottlenecks, 56", [](OneOp& it) { bottlenecks(it, 256, 56); }},
    {"Bottlenecks, 14", [](OneOp& it) { bottlenecks(it, 1024, 14); }},
    {"Inverted bottlenecks, 56", [](OneOp& it) { inverted_bottlenecks(it, 24, 56, 3); }},
    {"Inverted bottlenecks, 14", [](OneOp& it) { inverted_bottlenecks(it, 96, 14, 5); }},
    {"Conv 1x1", [](OneOp& it) { conv_with_bias(it, {1, 256, 28, 28}, {128, 256, 1, 1}, {1, 0}); }},
    {"Conv 1x1, 112", [](OneOp& it) { conv_with_bias(it, {1, 32, 112, 112}, {32, 32, 1, 1}, {1, 0}); }},
    {"Conv 1x1, wider", [](OneOp& it) { conv_with_bias(it, {1, 64, 56, 56}, {256, 64, 1, 1}, {1, 0}); }},
    {"Conv 1x1, narrower", [](OneOp& it) { conv_with_bias(it, {1, 256, 56, 56}, {64, 256, 1, 1}, {1, 0}); }},
    {"Conv 1x1, strides", [](OneOp& it) { conv_with_bias(it, {1, 256, 56, 56}, {512, 256, 1, 1}, {2, 0}); }},
    {"Conv 1x1, few", [](OneOp& it) { conv(it, {1, 3, 224, 224}, {3, 3, 1, 1}, {1, 0}); }},
    {"Conv 3x3", [](OneOp& it) { conv_with_bias(it, {1, 64, 56, 56}, {64, 64, 3, 3}, {1, 1}); }},
    {"Conv 3x3, 112", [](OneOp& it) { conv_with_bias(it, {1, 64, 112, 112}, {64, 64, 3, 3}, {1, 1}); }},
    {"Conv 3x3, 7", [](OneOp& it) { conv_with_bias(it, {1, 512, 7, 7}, {512, 512, 3, 3}, {1, 1}); }},
    {"Conv 3x3, strides", [](OneOp& it) { conv(it, {1, 128, 56, 56}, {128, 128, 3, 3}, {2, 1}); }},
    {"Conv 3x3, strides, 14", [](OneOp& it) { conv(it, {1, 128, 14, 14}, {256, 128, 3, 3}, {2, 1}); }},
    {"Conv 3x3, dilated", [](OneOp& it) { conv(it, {1, 256, 33, 33}, {64, 256, 3, 3}, {1, 18, 18}); }},
    {"Conv 3x3, groups", [](OneOp& it) { conv_with_bias(it, {1, 128, 28, 28}, {128, 4, 3, 3}, {1, 1, 1, 32}); }},
    {"Conv 3x3, depthwise", [](OneOp& it) { conv_with_bias(it, {1, 128, 56, 56}, {128, 1, 3, 3}, {1, 1, 1, 128}); }},
    {"Conv 3x3, depth, by 2", [](OneOp& it) { conv_with_bias(it, {1, 96, 112, 112}, {96, 1, 3, 3}, {2, 1, 1, 96}); }},
    {"Conv 3x3, depth last", [](OneOp& it) { channels_last(it, {1, 28, 28, 64}, {64, 1, 3, 3}, {1, 1, 1, 64}); }},
    {"Conv 5x5, small planes", [](OneOp& it) { conv_with_bias(it, {1, 960, 7, 7}, {960, 1, 5, 5}, {1, 2, 1, 960}); }},
    {"Conv 5x5, depth, by 2", [](OneOp& it) { conv_with_bias(it, {1, 240, 28, 28}, {240, 1, 5, 5}, {2, 2, 1, 240}); }},
    {"Conv 7x7, depthwise", [](OneOp& it) { conv_with_bias(it, {1, 192, 28, 28}, {192, 1, 7, 7}, {1, 3, 1, 192}); }},
    {"Conv 7x7, depth, 56", [](OneOp& it) { conv_with_bias(it, {1, 96, 56, 56}, {96, 1, 7, 7}, {1, 3, 1, 96}); }},
    {"Conv 7x7, strides", [](OneOp& it) { conv_with_bias(it, {1, 3, 224, 224}, {64, 3, 7, 7}, {2, 3}); }},
    {"Conv 16x16, patches", [](OneOp& it) { conv(it, {1, 3, 224, 224}, {192, 3, 16, 16}, {16, 0}); }},
    {"Conv 41, audio", [](OneOp& it) { conv(it, {1, 32, 4000}, {32, 32, 41}, {1, 20}); }},
    {"Conv 1024, FIR", [](OneOp& it) { conv(it, {1, 1, 16000}, {1, 1, 1024}, {1, 0}); }},
    {"Conv 256, frames", [](OneOp& it) { conv(it, {1, 1, 16000}, {258, 1, 256}, {128, 0}); }},
    {"Conv 3x3x3", [](OneOp& it) { conv(it, {1, 16, 16, 32, 32}, {32, 16, 3, 3, 3}, {1, 1}); }},
    {"Conv 3x3x3, few", [](OneOp& it) { conv(it, {1, 1, 32, 32, 32}, {8, 1, 3, 3, 3}, {1, 1}); }},
    {"ConvTranspose 2x2", [](OneOp& it) { windows(it, "ConvTranspose", {1, 128, 28, 28}, {128, 64, 2, 2}, {2, 0}); }},
    {"ConvTranspose 2x2, few", [](OneOp& it) { windows(it, "ConvTranspose", {1, 16, 56, 56}, {16, 8, 2, 2}, {2, 0}); }},
    {"ConvTranspose 2x2x2", [](OneOp& it) { windows(it, "ConvTranspose", {1, 32, 8, 8, 8}, {32, 16, 2, 2, 2}, {2, 0}); }},
    {"ConvTranspose 4x4", [](OneOp& it) { windows(it, "ConvTranspose", {1, 64, 28, 28}, {64, 32, 4, 4}, {2, 1}); }},
    {"ConvTranspose to RGB", [](OneOp& it) { windows(it, "ConvTranspose", {1, 64, 64, 64}, {64, 3, 4, 4}, {2, 1}); }},
    {"ConvTranspose to 1", [](OneOp& it) { windows(it, "ConvTranspose", {1, 32, 64, 64}, {32, 1, 4, 4}, {2, 1}); }},
    {"ConvTranspose 64, by 32", [](OneOp& it) { windows(it, "ConvTranspose", {1, 21, 7, 7}, {21, 21, 64, 64}, {32, 16}); }},

    // pools and images
    {"MaxPool", [](OneOp& it) { windows(it, "MaxPool", {1, 64, 112, 112}, {3, 3}, {2, 1}); }},
    {"MaxPool 3x3, 28", [](OneOp& it) { windows(it, "MaxPool", {1, 64, 28, 28}, {3, 3}, {1, 1}); }},
    {"MaxPool 2x2", [](OneOp& it) { windows(it, "MaxPool", {1, 64, 112, 112}, {2, 2}, {2, 0}); }},
    {"MaxPool 5x5", [](OneOp& it) { windows(it, "MaxPool", {1, 256, 20, 20}, {5, 5}, {1, 2}); }},
    {"MaxPool 14x14", [](OneOp& it) { windows(it, "MaxPool", {1, 256, 14, 14}, {14, 14}, {1, 0}); }},
    {"MaxPool 3x3x3", [](OneOp& it) { windows(it, "MaxPool", {1, 32, 16, 32, 32}, {3, 3, 3}, {2, 1}); }},
    {"MaxPool 100, by 50", [](OneOp& it) { windows(it, "MaxPool", {1, 64, 8000}, {100}, {50, 0}); }},
    {"MaxPool 3, audio", [](OneOp& it) { windows(it, "MaxPool", {1, 64, 8000}, {3}, {3, 0}); }},
    {"AveragePool", [](OneOp& it) { windows(it, "AveragePool", {1, 64, 56, 56}, {3, 3}, {1, 1}); }},
    {"AveragePool 3x3, 28", [](OneOp& it) { windows(it, "AveragePool", {1, 64, 28, 28}, {3, 3}, {2, 1}); }},
    {"AveragePool 2x2", [](OneOp& it) { windows(it, "AveragePool", {1, 512, 14, 14}, {2, 2}, {2, 0}); }},
    {"GlobalAveragePool", [](OneOp& it) { it.node("GlobalAveragePool", {it.input({8, 256, 14, 14})}); }},
    {"GlobalMaxPool", [](OneOp& it) { it.node("GlobalMaxPool", {it.input({1, 1280, 7, 7})}); }},
    {"Resize, nearest", [](OneOp& it) { twice(it, {1, 64, 64, 64}, "nearest"); }},
    {"Resize, linear", [](OneOp& it) { twice(it, {1, 64, 64, 64}, "linear"); }},
    {"Resize, cubic", [](OneOp& it) { twice(it, {1, 32, 40, 40}, "cubic"); }},
    {"RoiAlign", [](OneOp& it) { aligned(it, {1, 64, 50, 50}, 100, 7, "avg"); }},
    {"GridSample", [](OneOp& it) { it.node("GridSample", {it.input({1, 32, 56, 56}), it.input({1, 56, 56, 2})}); }},

    // 8-bit numbers
    {"MatMulInteger 1", [](OneOp& it) { quantized_product(it, 1, 768, 768); }},
    {"MatMulInteger 128", [](OneOp& it) { quantized_product(it, 128, 768, 768); }},
    {"MatMulInteger, inputs", [](OneOp& it) { quantized_inputs(it, {128, 256}, {256, 256}); }},
    {"QLinearConv, last", [](OneOp& it) { quantized_channels_last(it, {1, 28, 28, 64}, {64, 64, 3, 3}); }},
    {"Quantize and back", [](OneOp& it) { there_and_back(it, {1, 64, 56, 56}); }},
    {"QLinearAdd", [](OneOp& it) { on_bytes(it, "QLinearAdd", {1, 64, 56, 56}, {1, 64, 56, 56}); }},
    {"QLinearAdd, channels", [](OneOp& it) { on_bytes(it, "QLinearAdd", {1, 64, 56, 56}, {1, 64, 1, 1}); }},
    {"QLinearSigmoid", [](OneOp& it) { on_bytes(it, "QLinearSigmoid", {1, 64, 56, 56}); }},
};
// clang-format on

}  // namespace

std::span<const OpRow> op_rows() {
  return kRows;
}

}  // namespace bench
