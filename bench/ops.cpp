// SPDX-License-Identifier: Apache-2.0
// librlx beside ONNX Runtime on single ops of ONNX, on one thread: which kernels are behind. Equal outputs are asserted
// for every row; a row whose outputs differ ends the program.
//
//   bench_ops MODEL.onnx libonnxruntime.so [TURNS [PART_OF_A_NAME]]    (the model is not read)
#include <rlx.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "client.h"
#include "measure.h"
#include "one_op.h"
#include "ort.h"

namespace bench {
namespace {

struct Row {
  const char* name;
  void (*make)(OneOp&);
};

const Row kRows[] = {
    {"Add, rows",
     [](OneOp& it) {
       it.node("Add", {it.input({4096, 768}), it.input({768})});
     }},
    {"Mul, columns",
     [](OneOp& it) {
       it.node("Mul", {it.input({4096, 768}), it.input({4096, 1})});
     }},
    {"Div",
     [](OneOp& it) {
       it.node("Div", {it.input({1024, 1024}), it.input({1024, 1024})});
     }},
    {"Exp", [](OneOp& it) { unary(it, "Exp"); }},
    {"Log", [](OneOp& it) { unary(it, "Log"); }},
    {"Erf", [](OneOp& it) { unary(it, "Erf"); }},
    {"Tanh", [](OneOp& it) { unary(it, "Tanh"); }},
    {"Sigmoid", [](OneOp& it) { unary(it, "Sigmoid"); }},
    {"Sqrt", [](OneOp& it) { unary(it, "Sqrt"); }},
    {"Sin", [](OneOp& it) { unary(it, "Sin"); }},
    {"HardSwish", [](OneOp& it) { unary(it, "HardSwish"); }},
    {"Softmax",
     [](OneOp& it) {
       it.node("Softmax", {it.input({64, 128, 512})}, axis(-1));
     }},
    {"Softmax, inner",
     [](OneOp& it) {
       it.node("Softmax", {it.input({64, 128, 64})}, axis(1));
     }},
    {"LayerNormalization",
     [](OneOp& it) {
       it.node("LayerNormalization", {it.input({512, 768}), it.weight({768}), it.weight({768})});
     }},
    {"InstanceNormalization",
     [](OneOp& it) {
       it.node("InstanceNormalization", {it.input({1, 64, 56, 56}), it.weight({64}), it.weight({64})});
     }},
    {"BatchNormalization",
     [](OneOp& it) {
       it.node("BatchNormalization",
               {it.input({1, 64, 56, 56}), it.weight({64}), it.weight({64}), it.weight({64}), it.weight({64})});
     }},
    {"LRN",
     [](OneOp& it) {
       it.node("LRN", {it.input({1, 64, 56, 56})}, {OnnxWriter::attribute("size", int64_t{5})});
     }},
    {"ReduceMean, rows",
     [](OneOp& it) {
       it.node("ReduceMean", {it.input({1024, 1024})}, ints("axes", {1}));
     }},
    {"ReduceMean, columns",
     [](OneOp& it) {
       it.node("ReduceMean", {it.input({1024, 1024})}, ints("axes", {0}));
     }},
    {"ReduceMax, images",
     [](OneOp& it) {
       it.node("ReduceMax", {it.input({8, 64, 56, 56})}, ints("axes", {2, 3}));
     }},
    {"CumSum",
     [](OneOp& it) {
       it.node("CumSum", {it.input({512, 1024}), it.numbers({1})});
     }},
    {"Transpose, heads",
     [](OneOp& it) {
       it.node("Transpose", {it.input({8, 128, 12, 64})}, ints("perm", {0, 2, 1, 3}));
     }},
    {"Transpose, matrix",
     [](OneOp& it) {
       it.node("Transpose", {it.input({1024, 1024})}, ints("perm", {1, 0}));
     }},
    {"Transpose, channels",
     [](OneOp& it) {
       it.node("Transpose", {it.input({4, 64, 56, 56})}, ints("perm", {0, 2, 3, 1}));
     }},
    {"Concat",
     [](OneOp& it) {
       it.node("Concat", {it.input({64, 512}), it.input({64, 256}), it.input({64, 768})}, axis(1));
     }},
    {"Gather, columns",
     [](OneOp& it) {
       it.node("Gather", {it.input({256, 1000}), it.numbers({5, 900, 17, 333, 2, 64})}, axis(1));
     }},
    {"Slice, steps",
     [](OneOp& it) {
       it.node("Slice", {it.input({64, 56, 56}), it.numbers({0}), it.numbers({56}), it.numbers({2}), it.numbers({2})});
     }},
    {"Pad",
     [](OneOp& it) {
       it.node("Pad", {it.input({4, 64, 56, 56}), it.numbers({0, 0, 1, 1, 0, 0, 1, 1})});
     }},
    {"Tile",
     [](OneOp& it) {
       it.node("Tile", {it.input({128, 128}), it.numbers({4, 4})});
     }},
    {"DepthToSpace",
     [](OneOp& it) {
       it.node("DepthToSpace", {it.input({1, 256, 64, 64})}, {OnnxWriter::attribute("blocksize", int64_t{2})});
     }},
    {"Resize, nearest",
     [](OneOp& it) {
       twice(it, {1, 64, 64, 64}, "nearest");
     }},
    {"Resize, linear",
     [](OneOp& it) {
       twice(it, {1, 64, 64, 64}, "linear");
     }},
    {"MaxPool",
     [](OneOp& it) {
       it.node("MaxPool", {it.input({1, 64, 112, 112})}, window(3, 2, 1));
     }},
    {"AveragePool",
     [](OneOp& it) {
       it.node("AveragePool", {it.input({1, 64, 56, 56})}, window(3, 1, 1));
     }},
    {"GlobalAveragePool",
     [](OneOp& it) {
       it.node("GlobalAveragePool", {it.input({8, 256, 14, 14})});
     }},
    {"Conv 3x3",
     [](OneOp& it) {
       convolution(it, {1, 64, 56, 56}, {64, 64, 3, 3}, 1, 1);
     }},
    {"Conv 1x1",
     [](OneOp& it) {
       convolution(it, {1, 256, 28, 28}, {128, 256, 1, 1}, 1, 0);
     }},
    {"Conv 7x7, strides",
     [](OneOp& it) {
       convolution(it, {1, 3, 224, 224}, {64, 3, 7, 7}, 2, 3);
     }},
    {"Conv 3x3, depthwise",
     [](OneOp& it) {
       convolution(it, {1, 128, 56, 56}, {128, 1, 3, 3}, 1, 1, 128);
     }},
    {"Conv 3x3, groups",
     [](OneOp& it) {
       convolution(it, {1, 128, 28, 28}, {128, 4, 3, 3}, 1, 1, 32);
     }},
    {"ConvTranspose 4x4",
     [](OneOp& it) {
       it.node("ConvTranspose", {it.input({1, 64, 28, 28}), it.weight({64, 32, 4, 4})}, window(4, 2, 1));
     }},
    {"MatMul 1 768 3072", [](OneOp& it) { product(it, 1, 768, 3072); }},
    {"MatMul 16 768 768", [](OneOp& it) { product(it, 16, 768, 768); }},
    {"MatMul 128 768 768", [](OneOp& it) { product(it, 128, 768, 768); }},
    {"MatMul 512 512 512", [](OneOp& it) { product(it, 512, 512, 512); }},
    {"MatMul, batches",
     [](OneOp& it) {
       it.node("MatMul", {it.input({12, 128, 64}), it.input({12, 64, 128})});
     }},
    {"MatMulNBits, 1 row", [](OneOp& it) { few_bits(it, 1, 4096, 4096); }},
    {"MatMulNBits, 128 rows", [](OneOp& it) { few_bits(it, 128, 1024, 1024); }},
    {"MatMulNBits, 4 rows", [](OneOp& it) { few_bits(it, 4, 2048, 2048); }},
    {"MatMul 4 768 768", [](OneOp& it) { product(it, 4, 768, 768); }},
    {"MatMul 4096 64 3", [](OneOp& it) { product(it, 4096, 64, 3); }},
    {"MatMul, decode",
     [](OneOp& it) {
       it.node("MatMul", {it.input({12, 1, 64}), it.input({12, 64, 128})});
     }},
    {"MatMul, windows",
     [](OneOp& it) {
       it.node("MatMul", {it.input({64, 49, 32}), it.input({64, 32, 49})});
     }},
    {"MatMulInteger 1", [](OneOp& it) { quantized_product(it, 1, 768, 768); }},
    {"MatMulInteger 128", [](OneOp& it) { quantized_product(it, 128, 768, 768); }},
    {"Conv 1x1, few",
     [](OneOp& it) {
       conv(it, {1, 3, 224, 224}, {3, 3, 1, 1}, 1, 0);
     }},
    {"Conv 3x3, strides",
     [](OneOp& it) {
       conv(it, {1, 128, 56, 56}, {128, 128, 3, 3}, 2, 1);
     }},
    {"Conv 3x3, dilated",
     [](OneOp& it) {
       conv(it, {1, 256, 33, 33}, {64, 256, 3, 3}, 1, 18, 18);
     }},
    {"Conv 16x16, patches",
     [](OneOp& it) {
       conv(it, {1, 3, 224, 224}, {192, 3, 16, 16}, 16, 0);
     }},
    {"Conv 41, audio",
     [](OneOp& it) {
       conv(it, {1, 32, 4000}, {32, 32, 41}, 1, 20);
     }},
    {"Conv 3x3x3",
     [](OneOp& it) {
       conv(it, {1, 16, 16, 32, 32}, {32, 16, 3, 3, 3}, 1, 1);
     }},
    {"Conv 3x3x3, few",
     [](OneOp& it) {
       conv(it, {1, 1, 32, 32, 32}, {8, 1, 3, 3, 3}, 1, 1);
     }},
    {"Conv 7x7, depthwise",
     [](OneOp& it) {
       convolution(it, {1, 192, 28, 28}, {192, 1, 7, 7}, 1, 3, 192);
     }},
    {"Conv 5x5, small planes",
     [](OneOp& it) {
       convolution(it, {1, 960, 7, 7}, {960, 1, 5, 5}, 1, 2, 960);
     }},
    {"ConvTranspose 2x2",
     [](OneOp& it) {
       windows(it, "ConvTranspose", {1, 128, 28, 28}, {128, 64, 2, 2}, 2, 0);
     }},
    {"ConvTranspose to RGB",
     [](OneOp& it) {
       windows(it, "ConvTranspose", {1, 64, 64, 64}, {64, 3, 4, 4}, 2, 1);
     }},
    {"ConvTranspose 2x2x2",
     [](OneOp& it) {
       windows(it, "ConvTranspose", {1, 32, 8, 8, 8}, {32, 16, 2, 2, 2}, 2, 0);
     }},
    {"MaxPool 2x2",
     [](OneOp& it) {
       windows(it, "MaxPool", {1, 64, 112, 112}, {2, 2}, 2, 0);
     }},
    {"MaxPool 5x5",
     [](OneOp& it) {
       windows(it, "MaxPool", {1, 256, 20, 20}, {5, 5}, 1, 2);
     }},
    {"MaxPool 14x14",
     [](OneOp& it) {
       windows(it, "MaxPool", {1, 256, 14, 14}, {14, 14}, 1, 0);
     }},
    {"MaxPool 3x3x3",
     [](OneOp& it) {
       windows(it, "MaxPool", {1, 32, 16, 32, 32}, {3, 3, 3}, 2, 1);
     }},
    {"AveragePool 2x2",
     [](OneOp& it) {
       windows(it, "AveragePool", {1, 512, 14, 14}, {2, 2}, 2, 0);
     }},
    {"GlobalMaxPool",
     [](OneOp& it) {
       it.node("GlobalMaxPool", {it.input({1, 1280, 7, 7})});
     }},
    {"Resize, cubic",
     [](OneOp& it) {
       twice(it, {1, 32, 40, 40}, "cubic");
     }},
    {"GridSample",
     [](OneOp& it) {
       it.node("GridSample", {it.input({1, 32, 56, 56}), it.input({1, 56, 56, 2})});
     }},
    {"LSTM, a step", [](OneOp& it) { recurrent(it, "LSTM", 4, 1, 256); }},
    {"LSTM, 50 steps", [](OneOp& it) { recurrent(it, "LSTM", 4, 50, 128); }},
    {"GRU, 50 steps", [](OneOp& it) { recurrent(it, "GRU", 3, 50, 128); }},
    {"LayerNorm, short rows", [](OneOp& it) { layer_norm(it, 3136, 96); }},
    {"LayerNorm, a long row", [](OneOp& it) { layer_norm(it, 1, 4096); }},
    {"Softmax, short rows",
     [](OneOp& it) {
       it.node("Softmax", {it.input({4096, 16})}, axis(-1));
     }},
    {"ReduceMax, rows",
     [](OneOp& it) {
       reduce(it, "ReduceMax", {2048, 128}, {1});
     }},
    {"ReduceMean, short rows",
     [](OneOp& it) {
       reduce(it, "ReduceMean", {65536, 4}, {1});
     }},
    {"ReduceMean, middle",
     [](OneOp& it) {
       reduce(it, "ReduceMean", {16, 128, 128}, {1});
     }},
    {"ReduceL2",
     [](OneOp& it) {
       reduce(it, "ReduceL2", {512, 512}, {0, 1});
     }},
    {"ArgMax, rows",
     [](OneOp& it) {
       extreme(it, {2048, 128});
     }},
    {"ArgMax, short rows",
     [](OneOp& it) {
       extreme(it, {65536, 4});
     }},
    {"TopK 5",
     [](OneOp& it) {
       first(it, {64, 1000}, 5);
     }},
    {"TopK, all",
     [](OneOp& it) {
       first(it, {64, 1000}, 1000);
     }},
    {"NonMaxSuppression 1", [](OneOp& it) { boxes(it, 1, 1000); }},
    {"NonMaxSuppression 80", [](OneOp& it) { boxes(it, 80, 1000); }},
    {"NonZero",
     [](OneOp& it) {
       it.cast(it.step("NonZero", {it.step("Greater", {it.input({256, 256}), it.number(1)})}));
     }},
    {"Concat, columns", [](OneOp& it) { columns(it, 8400); }},
    {"Transpose, columns",
     [](OneOp& it) {
       it.node("Transpose", {it.input({65536, 3})}, ints("perm", {1, 0}));
     }},
    {"Where",
     [](OneOp& it) {
       std::string x = it.input({512, 512});
       it.node("Where", {it.step("Greater", {x, it.number(0.5F)}), x, it.number(-1e9F)});
     }},
    {"Gelu",
     [](OneOp& it) {
       it.node("Gelu", {it.input({512, 512})}, {}, "com.microsoft");
     }},
    {"Pow 1.7",
     [](OneOp& it) {
       it.node("Pow", {it.input({512, 512}), it.number(1.7F)});
     }},
    {"Add, one row",
     [](OneOp& it) {
       it.node("Add", {it.input({1, 128}), it.input({1, 128})});
     }},
    {"Quantize and back",
     [](OneOp& it) {
       std::string q = quantized(it, {1, 64, 56, 56});
       it.node("DequantizeLinear", {q, it.number(0.005F), it.zero_byte(3)});
     }},
    {"QLinearAdd",
     [](OneOp& it) {
       on_bytes(it, "QLinearAdd", {1, 64, 56, 56}, {1, 64, 56, 56});
     }},
    {"QLinearAdd, channels",
     [](OneOp& it) {
       on_bytes(it, "QLinearAdd", {1, 64, 56, 56}, {1, 64, 1, 1});
     }},
    {"QLinearSigmoid",
     [](OneOp& it) {
       on_bytes(it, "QLinearSigmoid", {1, 64, 56, 56});
     }},
    {"QLinearConv, last",
     [](OneOp& it) {
       quantized_channels_last(it, {1, 28, 28, 64}, {64, 64, 3, 3});
     }},
    {"MatMulInteger, inputs",
     [](OneOp& it) {
       std::string a = quantized(it, {128, 256});
       it.cast(it.step("MatMulInteger", {a, quantized(it, {256, 256}), it.zero_byte(3), it.zero_byte(3)}));
     }},
    {"Conv 3x3, last, depth",
     [](OneOp& it) {
       channels_last(it, {1, 28, 28, 64}, {64, 1, 3, 3}, 1, 64);
     }},
    {"Conv 3x3, strides, 14",
     [](OneOp& it) {
       conv(it, {1, 128, 14, 14}, {256, 128, 3, 3}, 2, 1);
     }},
    {"Conv 1024, FIR",
     [](OneOp& it) {
       conv(it, {1, 1, 16000}, {1, 1, 1024}, 1, 0);
     }},
    {"Conv 256, frames",
     [](OneOp& it) {
       conv(it, {1, 1, 16000}, {258, 1, 256}, 128, 0);
     }},
    {"ConvTranspose 64, by 32",
     [](OneOp& it) {
       windows(it, "ConvTranspose", {1, 21, 7, 7}, {21, 21, 64, 64}, 32, 16);
     }},
    {"ConvTranspose to 1",
     [](OneOp& it) {
       windows(it, "ConvTranspose", {1, 32, 64, 64}, {32, 1, 4, 4}, 2, 1);
     }},
    {"ConvTranspose 2x2, few",
     [](OneOp& it) {
       windows(it, "ConvTranspose", {1, 16, 56, 56}, {16, 8, 2, 2}, 2, 0);
     }},
    {"MaxPool 3x3, 28",
     [](OneOp& it) {
       windows(it, "MaxPool", {1, 64, 28, 28}, {3, 3}, 1, 1);
     }},
    {"AveragePool 3x3, 28",
     [](OneOp& it) {
       windows(it, "AveragePool", {1, 64, 28, 28}, {3, 3}, 2, 1);
     }},
    {"MaxPool 100, by 50",
     [](OneOp& it) {
       windows(it, "MaxPool", {1, 64, 8000}, {100}, 50, 0);
     }},
    {"MaxPool 3, audio",
     [](OneOp& it) {
       windows(it, "MaxPool", {1, 64, 8000}, {3}, 3, 0);
     }},
    {"BatchNorm, audio", [](OneOp& it) { batch_norm(it, {2, 64, 1000}); }},
    {"Softmax, few behind",
     [](OneOp& it) {
       it.node("Softmax", {it.input({64, 21, 16})}, axis(1));
     }},
    {"TopK 5, short rows",
     [](OneOp& it) {
       first(it, {8400, 16}, 5);
     }},
    {"CDist",
     [](OneOp& it) {
       it.node("CDist", {it.input({256, 64}), it.input({256, 64})},
               {OnnxWriter::attribute("metric", std::string_view("euclidean"))}, "com.microsoft");
     }},
    {"ScatterElements, add",
     [](OneOp& it) {
       scatter(it, "ScatterElements", {2000, 64}, {2000, 64});
     }},
    {"ScatterND, add",
     [](OneOp& it) {
       scatter(it, "ScatterND", {2000, 1}, {2000, 64});
     }},
};

struct Program {
  rlx_graph_t* graph = nullptr;
  rlx_compiled_t* compiled = nullptr;
  rlx_exec_t* exec = nullptr;

  Program(rlx_env_t* env, const std::vector<uint8_t>& model) {
    check(rlx_import_memory(env, "onnx", model.data(), model.size(), nullptr, nullptr, nullptr, &graph, nullptr));
    check(rlx_compile(graph, nullptr, nullptr, nullptr, &compiled));
    check(rlx_exec_create(compiled, nullptr, &exec));
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    rlx_exec_release(exec);
    rlx_compiled_release(compiled);
    rlx_graph_release(graph);
  }
};

// Of one op, beside the peer; returns the ratio.
double bench_op(const Row& row, const Turns& turns) {
  OneOp op;
  row.make(op);
  std::vector<uint8_t> model = op.model();
  Env env = make_env(1);
  Program program(env.get(), model);
  Ort ort(model, 1);
  for (OneOp::Input& input : op.inputs()) {
    auto slot = static_cast<size_t>(rlx_compiled_find(program.compiled, RLX_INPUT, input.name.c_str()));
    size_t bytes = input.values.size() * sizeof(float);
    check(rlx_exec_bind_ptr(program.exec, RLX_INPUT, slot, input.values.data(), bytes));
    ort.bind(input.name, Ort::Type::kF32, input.dims, input.values.data());
  }
  auto ours = [&] { check(rlx_exec_run(program.exec)); };
  auto peer = [&] { ort.run(); };
  ours(), peer();
  assert_equal(row.name, output(program.exec), ort.output(0));
  int runs = std::max(1, static_cast<int>(20 / time_ms(ours)));  // a turn of some 20 ms
  Duel times = duel(turns, std::min(runs, 100), ours, peer);
  print_duel(row.name, times, "us", 1e3);
  std::fflush(stdout);
  return times.ratio();
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx libonnxruntime.so [TURNS [PART_OF_A_NAME]]\n", argv[0]);
    return 2;
  }
  const bench::Turns turns{argc > 3 ? std::max(1, std::atoi(argv[3])) : 5, 0};
  const std::string part = argc > 4 ? argv[4] : "";
  bench::Ort::load(argv[2]);
  std::printf("%s; librlx %s, ONNX Runtime %s\nsingle ops, f32, 1 thread; %d turns each, in alternation\n",
              bench::cpu_name().c_str(), rlx_version_string(), bench::Ort::version().c_str(), turns.count);
  std::printf("%-22s  %-27s  %-27s  unit ratio\n", "", "librlx [quartiles]", "ONNX Runtime [quartiles]");
  double logs = 0, least = INFINITY;
  int count = 0;
  for (const bench::Row& row : bench::kRows) {
    if (std::string(row.name).find(part) == std::string::npos) continue;
    double ratio = bench::bench_op(row, turns);
    logs += std::log(ratio), least = std::min(least, ratio), count++;
  }
  if (count > 0) std::printf("geometric mean of %d ops: %.2fx, least %.2fx\n", count, std::exp(logs / count), least);
}
