// SPDX-License-Identifier: Apache-2.0
// The CPU's native rows against the oracle, through whole programs: strides, sizes, forms and fallbacks.
#include <cstring>

#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// 0: every bit must agree.
static void expect_agreement(const Tensor& got, const Tensor& want, float tolerance) {
  if (tolerance == 0)
    EXPECT_TRUE(got.same_bytes(want));
  else
    expect_near(got, want, tolerance);
}

// Compiles for cpu and reference, runs both, compares; returns the CPU's dispatch report.
static std::string compare(const Graph& graph, std::shared_ptr<Weights> weights, const std::vector<Tensor>& in,
                           const NamedAttrs& options = {}, float tolerance = 2e-5f) {
  auto env = env_with(2);
  size_t outputs = graph.outputs().size();
  auto oracle = Program::compile(env, graph, weights, *env->find_device("reference"), {});
  auto program = Program::compile(env, graph, weights, *env->find_device("cpu"), options);
  EXPECT_TRUE(oracle.ok()) << oracle.status().message();
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!oracle.ok() || !program.ok()) return {};
  auto want = (*oracle)->run({}, in, {}, outputs), got = (*program)->run({}, in, {}, outputs);
  EXPECT_TRUE(want.ok()) << want.status().message();
  EXPECT_TRUE(got.ok()) << got.status().message();
  if (want.ok() && got.ok())
    for (size_t i = 0; i < outputs; i++) {
      SCOPED_TRACE(graph.outputs()[i].name);
      expect_agreement((*got)[i], (*want)[i], tolerance);
    }
  return *(*program)->report("dispatch");
}

TEST(cpu_rows, an_encoder_layer_agrees_with_the_oracle_at_many_sizes) {
  Encoder encoder;
  auto env = env_with(2);
  auto oracle = *Program::compile(env, encoder.graph, encoder.weights, *env->find_device("reference"), {});
  auto program = Program::compile(env, encoder.graph, encoder.weights, nullptr, {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  for (auto [batch, seq] : {std::pair{2, 17}, {1, 1}, {8, 64}, {3, 0}, {2, 17}}) {
    auto in = Encoder::inputs(batch, seq);
    auto want = oracle->run({}, in, {}, 2), got = (*program)->run({}, in, {}, 2);
    ASSERT_TRUE(want.ok()) << want.status().message();
    ASSERT_TRUE(got.ok()) << got.status().message();
    expect_near((*got)[0], (*want)[0]);
    expect_near((*got)[1], (*want)[1]);
  }
  std::string report = *(*program)->report("dispatch");
  for (const char* kernel : {"linear_f32_packed", "attention_f32", "residual_layer_norm_f32", "region", "reduce_f32"})
    EXPECT_NE(report.find(kernel), std::string::npos) << kernel << '\n' << report;
  EXPECT_EQ(plan_text((*program)->plan()).find("copy"), std::string::npos) << "a view became a step";
}

TEST(cpu_rows, views_that_are_outputs_are_copied) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {6, 4, 5});
  output(b, "t", transpose(x, {2, 0, 1}));
  output(b, "s", slice(slice(x, 0, 1, 6, 2), 2, 1, 4));
  output(b, "r", reshape(transpose(x, {1, 0, 2}), {24, 5}));
  output(b, "w", broadcast_to(slice(x, 1, 0, 1), {6, 4, 5}));
  output(b, "x2", x);
  output(b, "tail", slice(x, 0, 4, 6));
  output(b, "back", slice(x, 2, -1, -6, -1));
  output(b, "both", slice(slice(transpose(x, {2, 0, 1}), 1, -2, 0, -2), 2, 9, -9, -3));
  EXPECT_EQ(compare(graph, nullptr, {noise({6, 4, 5})}).find("reference"), std::string::npos);
}

TEST(cpu_rows, the_report_tells_views_from_steps) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {6, 4});
  output(b, "y", exp(reshape(x, {4, 6})));
  std::string report = compare(graph, nullptr, {noise({6, 4})});
  EXPECT_NE(report.find("\"path\": \"view\""), std::string::npos) << report;
  EXPECT_EQ(report.find("reference"), std::string::npos) << report;
}

TEST(cpu_rows, products_of_every_form) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  Expr x = input(b, "x", {3, 7, 20}), y = input(b, "y", {3, 20, 9});
  Expr w = weight(b, *weights, "w", {20, 33}), wt = weight(b, *weights, "wt", {33, 20});
  output(b, "packed", matmul(x, w));
  output(b, "packed_t", matmul(x, wt, {.b = true}));
  output(b, "batched", matmul(x, y));
  output(b, "flipped", matmul(transpose(x, {0, 2, 1}), transpose(y, {0, 2, 1}), {.a = true, .b = true}));
  output(b, "outer", matmul(x, x, {.a = true}));
  output(b, "wide", matmul(reshape(x, {3, 1, 7, 20}), broadcast_to(reshape(y, {3, 1, 20, 9}), {3, 2, 20, 9})));
  output(b, "prepared", matmul(x, transpose(wt * 2.0, {1, 0})));
  std::string report = compare(graph, weights, {noise({3, 7, 20}), noise({3, 20, 9}, 5)});
  EXPECT_NE(report.find("matmul_f32_packed"), std::string::npos) << report;
  EXPECT_NE(report.find("\"matmul_f32\""), std::string::npos);
}

// Elementwise ops on halves are regions; products and norms are computed in f32, between casts.
TEST(cpu_rows, halves_have_kernels) {
  for (DType half : {DType::kF16, DType::kBF16}) {
    Graph graph;
    auto weights = std::make_shared<Weights>();
    Builder b(graph);
    Expr x = cast(input(b, "x", {5, 37}), half), w = cast(weight(b, *weights, "w", {37, 33}), half);
    Expr y = unary(Op::kGelu, matmul(x, w)) + cast(input(b, "r", {33}), half);
    Expr z = b.op(Op::kSoftmax, {y * y}, {{"axis", int64_t{-1}}});
    output(b, "y", cast(y, DType::kF32));
    output(b, "z", cast(z, DType::kF32));
    output(b, "m", cast(binary(Op::kLt, x, scalar_like(x, 0.25)), DType::kF32));
    output(b, "t", cast(cast(transpose(x, {1, 0}), DType::kBool), DType::kF32));
    std::string report =
        compare(graph, weights, {noise({5, 37}), noise({33}, 3)}, {}, half == DType::kF16 ? 2e-3f : 2e-2f);
    for (const char* kernel : {"linear_f32_packed", "softmax_f32"})
      EXPECT_NE(report.find(kernel), std::string::npos) << kernel << '\n' << report;
    EXPECT_EQ(report.find("reference"), std::string::npos) << report;
  }
}

// Rows that are cut, too.
TEST(cpu_rows, log_softmax_is_one_step) {
  for (int64_t n : {33, 40000}) {
    Graph graph;
    Builder b(graph);
    output(b, "y", b.op(Op::kLogSoftmax, {input(b, "x", {3, n})}, {{"axis", int64_t{-1}}}));
    std::string report = compare(graph, nullptr, {noise({3, n})});
    EXPECT_NE(report.find("log_softmax_f32"), std::string::npos) << report;
  }
}

// exp of these overflows, half of it does not.
TEST(cpu_rows, hyperbolic_functions_reach_the_largest_floats) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {2});
  output(b, "c", b.op(Op::kCosh, {x}));
  output(b, "s", b.op(Op::kSinh, {x}));
  Tensor in = noise({2});
  in.as<float>()[0] = 89, in.as<float>()[1] = -89.4f;
  compare(graph, nullptr, {in});
}

// Sums of 300 terms below 1, so that f32 is compared at the tolerance of its class.
TEST(cpu_rows, large_and_wide_products_are_blas_s) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {300, 300}), y = input(b, "y", {300, 300});
  Expr wide_x = cast(x, DType::kF64), wide_y = cast(y, DType::kF64);
  output(b, "large", matmul(x, y));
  output(b, "flipped", matmul(x, transpose(y, {1, 0})));
  output(b, "f64", cast(matmul(wide_x, wide_y, {.a = true}), DType::kF32));
  output(b, "views", cast(matmul(slice(wide_x, 0, 0, 300, 3), transpose(wide_y, {1, 0})), DType::kF32));
  std::string report = compare(graph, nullptr, {noise({300, 300}, 1, 0.1f), noise({300, 300}, 2, 0.1f)});
  EXPECT_NE(report.find("matmul_f64_blas"), std::string::npos) << report;
}

TEST(cpu_rows, elementwise_ops_broadcast_and_mix_types) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4, 1, 6}), y = input(b, "y", {5, 1}), p = abs(x) + 0.5;
  output(b, "chain", tanh(x) * y - exp(y) / p);
  output(b, "choice", where(less(x, y), x, maximum(y, x * 2.0)));
  output(b, "flags", cast(logical_or(less(x, y), equal(y, y)), DType::kF32));
  output(b, "log", log(p) + sqrt(p) + erf(x));
  output(b, "unary", unary(Op::kGelu, x) + unary(Op::kSilu, y) + unary(Op::kSigmoid, x));
  compare(graph, nullptr, {noise({4, 1, 6}), noise({5, 1}, 9)});
}

static Tensor whole_numbers(DType dtype, std::vector<int64_t> dims) {
  Tensor tensor = *Tensor::create(dtype, dims);
  auto* bytes = static_cast<std::byte*>(tensor.data());
  int64_t size = element_bytes(dtype);
  for (int64_t i = 0; i < tensor.count(); i++) {
    auto value = static_cast<uint64_t>(dtype == DType::kBool ? i * 7 % 3 % 2 : i * 37 % 11 - 5);
    double real = static_cast<double>(static_cast<int64_t>(value)) / 4;
    std::memcpy(bytes + i * size, dtype == DType::kF64 ? static_cast<void*>(&real) : &value, static_cast<size_t>(size));
  }
  return tensor;
}

TEST(cpu_rows, integers_f64_and_truth_values_have_kernels) {
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU8, DType::kF64, DType::kBool}) {
    Graph graph;
    Builder b(graph);
    Expr x = b.wrap(*graph.add_input("x", dtype, {4, 1, 300})), y = b.wrap(*graph.add_input("y", dtype, {5, 1}));
    Expr index = b.wrap(*graph.add_input("i", DType::kI64, {4, 1, 7}));
    auto make = [&](Op op, std::vector<Expr> in) {
      output(b, ("o" + std::to_string(static_cast<int>(op))).c_str(), b.ops(op, in)[0]);
    };
    if (dtype != DType::kBool) {
      for (Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv}) make(op, {x, y});
      for (Op op : {Op::kGt, Op::kGe, Op::kLe, Op::kLt}) make(op, {y, x});
      output(b, "sums", reduce(transpose(x, {2, 0, 1}), "sum", {0, 2}, KeepDims::kNo));
      output(b, "float", cast(x, DType::kF32));
    } else {
      for (Op op : {Op::kBitAnd, Op::kBitOr, Op::kBitXor}) make(op, {x, y});
      make(Op::kBitNot, {x});
    }
    for (Op op : {Op::kMax, Op::kMin, Op::kEq, Op::kNe}) make(op, {x, y});
    output(b, "choice", where(less(y, x), x, y));
    output(b, "top", reduce(x, "max", {0, 2}));
    output(b, "flags", cast(x, DType::kI32));
    output(b, "picked", b.op(Op::kGatherElements, {x, index}, {{"axis", int64_t{2}}}));
    std::vector<Tensor> in = {whole_numbers(dtype, {4, 1, 300}), whole_numbers(dtype, {5, 1}),
                              whole_numbers(DType::kI64, {4, 1, 7})};
    SCOPED_TRACE(name(dtype));
    std::string report = compare(graph, nullptr, in, {}, 0);
    EXPECT_NE(report.find("\"typed\""), std::string::npos) << report;
    EXPECT_EQ(report.find("reference"), std::string::npos) << report;
  }
}

// What only a typed row computes stays outside, and the rest is still one region.
TEST(cpu_rows, integers_leave_regions_whole) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {40, 30}), i = b.wrap(*graph.add_input("i", DType::kI64, {40, 30}));
  output(b, "y", where(equal(i + i, i * i), exp(x) * 2.0, tanh(x) + 1.0));
  std::string report = compare(graph, nullptr, {noise({40, 30}), whole_numbers(DType::kI64, {40, 30})});
  EXPECT_NE(report.find("\"region\""), std::string::npos) << report;
  EXPECT_NE(report.find("\"typed\""), std::string::npos) << report;
}

// Subnormal numbers are themselves or 0 (semantics.md N5), in the whole of a function.
TEST(cpu_rows, functions_of_subnormal_numbers_are_those_of_zero) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4}), y = input(b, "y", {4});
  output(b, "angle", atan2(x, y));
  output(b, "power", b.ops(Op::kPow, std::array{x, y})[0]);
  output(b, "rest", b.ops(Op::kRem, std::array{y, x})[0]);
  Tensor small = *Tensor::create(DType::kF32, std::array<int64_t, 1>{4}),
         other = *Tensor::create(DType::kF32, std::array<int64_t, 1>{4});
  const float values[] = {1e-45f, -1e-40f, 1e-40f, 1e-38f}, others[] = {1e-45f, 1e-40f, 0.5f, -0.5f};
  std::copy_n(values, 4, small.as<float>());
  std::copy_n(others, 4, other.as<float>());
  auto program = *Program::compile(env_with(1), graph, nullptr, nullptr, {});
  auto got = *program->run({}, std::array{small, other}, {}, 3);
  for (int i = 0; i < 4; i++) {
    float zero = std::copysign(0.0f, values[i]),
          right = std::abs(others[i]) < 1e-37f ? std::copysign(0.0f, others[i]) : others[i];
    EXPECT_EQ(got[0].as<float>()[i], std::atan2(zero, right)) << i;
    EXPECT_EQ(got[1].as<float>()[i], std::pow(zero, right)) << i;
    EXPECT_TRUE(std::isnan(got[2].as<float>()[i])) << i;
  }
  EXPECT_EQ(program->report("dispatch")->find("reference"), std::string::npos);
}

TEST(cpu_rows, gates_of_every_activation) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {3, 8, 10});
  for (const char* act : {"none", "relu", "gelu", "gelu_tanh", "silu", "sigmoid", "tanh", "softplus", "mish"})
    for (int64_t gate_first : {0, 1}) {
      NamedAttrs attrs{{"act", std::string(act)}, {"gate_first", gate_first}};
      Expr last = b.op(Op::kGlu, {x}, attrs);
      attrs.emplace_back("axis", int64_t{1});
      Expr flipped = b.op(Op::kGlu, {transpose(x, {1, 2, 0})}, attrs);
      std::string name = std::string(act) + std::to_string(gate_first);
      output(b, name.c_str(), last);
      output(b, (name + "t").c_str(), flipped);
      output(b, (name + "g").c_str(), b.op(Op::kGatedAct, {last, last + 1.0}, {{"act", std::string(act)}}));
    }
  std::string report = compare(graph, nullptr, {noise({3, 8, 10})});
  EXPECT_NE(report.find("\"op\": \"glu\""), std::string::npos) << report;
}

TEST(cpu_rows, ropes_of_every_layout) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {2, 4, 5, 12}), angle = input(b, "angle", {2, 5, 6});
  Expr c = unary(Op::kCos, angle), s = unary(Op::kSin, angle);
  Expr rows = transpose(x, {0, 2, 1, 3}), joined = reshape(rows, {2, 5, 48});
  Expr few_c = slice(c, -1, 1, 4), few_s = slice(s, -1, 1, 4), one_c = slice(c, 0, 0, 1), one_s = slice(s, 0, 0, 1);
  for (const char* style : {"half", "interleaved"})
    for (int64_t inverse : {0, 1}) {
      NamedAttrs attrs{{"style", std::string(style)}, {"inverse", inverse}};
      auto with = [&](const char* layout) {
        NamedAttrs all = attrs;
        all.emplace_back("layout", std::string(layout));
        if (std::string_view(layout) == "bsx") all.emplace_back("num_heads", int64_t{4});
        return all;
      };
      std::string name = style + std::to_string(inverse);
      output(b, (name + ".bhsd").c_str(), b.op(Op::kRope, {x, c, s}, with("bhsd")));
      output(b, (name + ".bshd").c_str(), b.op(Op::kRope, {rows, few_c, few_s}, with("bshd")));
      output(b, (name + ".bsx").c_str(), b.op(Op::kRope, {joined, one_c, one_s}, with("bsx")));
    }
  std::string report = compare(graph, nullptr, {noise({2, 4, 5, 12}), noise({2, 5, 6}, 2, 3)});
  EXPECT_NE(report.find("rope_f32"), std::string::npos) << report;
}

TEST(cpu_rows, convolutions_side_by_side_are_products) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  Expr image = input(b, "image", {2, 3, 8, 12}), line = input(b, "line", {2, 3, 9});
  Expr bias = weight(b, *weights, "bias", {1, 5, 1, 1});
  auto conv = [&](Expr x, const char* name, std::vector<int64_t> dims, std::vector<int64_t> strides) {
    return b.op(Op::kConv, {x, weight(b, *weights, name, std::move(dims))}, {{"strides", std::move(strides)}});
  };
  output(b, "patches", conv(image, "w1", {5, 3, 4, 4}, {4, 4}) + bias);
  output(b, "points", conv(image, "w2", {5, 3, 1, 1}, {1, 1}));
  output(b, "pieces", conv(line, "w3", {4, 3, 3}, {3}));
  output(b, "overlap", conv(image, "w4", {5, 3, 4, 4}, {2, 4}) + bias);
  output(b, "rest", conv(line, "w5", {4, 3, 2}, {2}));
  std::string report = compare(graph, weights, {noise({2, 3, 8, 12}), noise({2, 3, 9}, 4)});
  size_t products = 0;
  for (size_t at = 0; (at = report.find("\"op\": \"linear\"", at)) != std::string::npos; at++) products++;
  EXPECT_EQ(products, 2u) << "patches and pieces; a point is not a patch\n" << report;
}

TEST(cpu_rows, convolutions_by_every_loop) {
  Graph graph;
  auto weights = std::make_shared<Weights>();
  Builder b(graph);
  Expr image = input(b, "image", {2, 6, 10, 12});
  auto conv = [&](const char* name, std::vector<int64_t> dims, NamedAttrs attrs) {
    return b.op(Op::kConv, {image, weight(b, *weights, name, std::move(dims))}, std::move(attrs));
  };
  std::vector<Dim> ones{1, 1};
  Expr bias = weight(b, *weights, "bias", {40, 1, 1});
  output(b, "many", unary(Op::kHardSwish, conv("w1", {40, 6, 3, 3}, {{"pad_lo", ones}, {"pad_hi", ones}}) + bias));
  output(b, "few", conv("w2", {3, 6, 3, 3}, {{"pad_lo", ones}, {"strides", std::vector<int64_t>{2, 1}}}));
  output(b, "points", conv("w3", {20, 6, 1, 1}, {}));
  output(b, "deep", unary(Op::kRelu, conv("w4", {6, 1, 3, 3}, {{"pad_lo", ones}, {"groups", int64_t{6}}})));
  output(b, "spread", conv("w5", {5, 6, 2, 9}, {{"pad_lo", ones}, {"lhs_dilation", std::vector<int64_t>{2, 20}}}));
  std::string report = compare(graph, weights, {noise({2, 6, 10, 12})});
  for (const char* kernel : {"conv_f32_packed", "conv_f32_direct", "conv_f32_scattered"})
    EXPECT_NE(report.find(kernel), std::string::npos) << report;
  for (const char* other : {"reference", "region"}) EXPECT_EQ(report.find(other), std::string::npos) << report;
}

TEST(cpu_rows, one_value_around_is_a_row) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {3, 5});
  auto pad = [&](Expr of, std::vector<Dim> lo, std::vector<Dim> hi) {
    return b.op(Op::kPad, {of}, {{"lo", std::move(lo)}, {"hi", std::move(hi)}});
  };
  output(b, "around", pad(x, {1, 2}, {0, 3}));
  output(b, "cropped", pad(x, {-1, 2}, {0, -1}));
  output(b, "turned", pad(transpose(x, {1, 0}), {1, 1}, {1, 1}));
  output(
      b, "valued",
      b.op(Op::kPad, {x, b.scalar(DType::kF32, 7)}, {{"lo", std::vector<Dim>{1, 1}}, {"hi", std::vector<Dim>{0, 1}}}));
  std::string report = compare(graph, nullptr, {noise({3, 5})});
  EXPECT_NE(report.find("\"pad\""), std::string::npos) << report;
  EXPECT_EQ(report.find("reference"), std::string::npos) << report;
}

TEST(cpu_rows, chains_become_one_region) {
  Graph graph;
  Dim n = Dim::symbol("n");
  ASSERT_TRUE(graph.declare_symbol("n", {0, 5000}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {n, 3}), y = input(b, "y", {n, 1});
  Expr shared = tanh(x) * y;
  Expr chain = where(less(shared, x), exp(shared) + 1.5, abs(x) / 3.0) - x * 0.25;
  output(b, "chain", chain);
  output(b, "shared", shared * shared + sqrt(abs(y)));
  auto env = env_with(2);
  auto program = *Program::compile(env, graph, nullptr, nullptr, {});
  auto oracle = *Program::compile(env, graph, nullptr, *env->find_device("reference"), {});
  for (int64_t size : {5000, 1, 0, 77}) {
    std::vector<Tensor> in = {noise({size, 3}), noise({size, 1}, 8)};
    auto got = program->run({}, in, {}, 2), want = oracle->run({}, in, {}, 2);
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (size_t i = 0; i < 2; i++) expect_near((*got)[i], (*want)[i]);
  }
  EXPECT_LE(program->plan().steps.size(), 4u) << *program->report("text");
  EXPECT_NE(program->report("dispatch")->find("\"region\""), std::string::npos);
}

// Pairs of sums, differences and products are one op of the interpreter, on either side of the second, unless more than
// that reads the first.
TEST(cpu_rows, regions_join_pairs_of_ops) {
  using Two = Expr (*)(Expr, Expr);
  const Two kTwo[] = {[](Expr a, Expr b) { return a + b; }, [](Expr a, Expr b) { return a - b; },
                      [](Expr a, Expr b) { return a * b; }};
  for (int64_t rows : {1, 7}) {
    Graph graph;
    Builder b(graph);
    Expr x = input(b, "x", {rows, 515}), y = input(b, "y", {rows, 1}), z = input(b, "z", {515});
    int count = 0;
    auto made = [&](Expr value) { output(b, ("y" + std::to_string(count++)).c_str(), value); };
    for (Two first : kTwo) {
      for (Two second : kTwo) {
        made(second(first(x, y), z));
        made(second(z, first(x, y)));
        made(second(first(x, y), first(x, z)));
        made(second(second(first(x, y), z), x));
        Expr shared = first(x, y);
        made(second(shared, shared) * abs(z));
        made(abs(shared) + second(z, shared));
      }
      made(unary(Op::kRelu, first(x, z)));
    }
    compare(graph, nullptr, {noise({rows, 515}), noise({rows, 1}, 8), noise({515}, 9)});
  }
}

TEST(cpu_rows, regions_convert_what_they_read) {
  Graph graph;
  Builder b(graph);
  Expr bytes = cast(input(b, "x", {3, 700}) * 100.0, DType::kU8), pixels = cast(bytes, DType::kF32);
  output(b, "pixels", pixels);
  output(b, "normal", (cast(bytes + bytes, DType::kF32) - 127.5) * input(b, "scale", {3, 1}));
  compare(graph, nullptr, {noise({3, 700}), noise({3, 1}, 8)});
}

TEST(cpu_rows, movement_and_reductions) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {5, 40, 6});
  Tensor picks = *Tensor::create(DType::kI64, std::array<int64_t, 2>{2, 3});
  for (int i = 0; i < 6; i++) picks.as<int64_t>()[i] = i % 2 ? -i : i - 1;
  Expr index = b.wrap(*graph.add_input("i", DType::kI64, {2, 3}));
  output(b, "rows", gather(x, index, 0));
  output(b, "columns", gather(x, index, 2));
  output(b, "joined", concat(std::array{x, x * 2.0, slice(x, 1, 3, 9)}, 1));
  output(b, "sum1", sum(x, {1}));
  output(b, "sum2", sum(x, {2}));
  output(b, "top", reduce(x, "max", {0, 1}, KeepDims::kNo));
  output(b, "low", reduce(x, "min", {0, 2}, KeepDims::kNo));
  output(b, "all", reduce(x, "prod", {0, 1, 2}, KeepDims::kNo));
  output(b, "mean", mean(x, {-1}));
  for (int i = 0; i < 6; i++) picks.as<int64_t>()[i] = std::clamp<int64_t>(picks.as<int64_t>()[i], -5, 4);
  compare(graph, nullptr, {noise({5, 40, 6}), picks});
}

// Rows of more than a part's bytes, pieces of which are shorter and longer than a part, or empty.
TEST(cpu_rows, long_rows_are_joined_in_parts) {
  for (int64_t outer : {1, 3}) {
    Graph graph;
    Builder b(graph);
    std::vector<Expr> pieces;
    std::vector<Tensor> in;
    for (int64_t n : {5, 40001, 0, 16384, 7, 16379}) {
      pieces.push_back(input(b, ("x" + std::to_string(n)).c_str(), {outer, n}));
      in.push_back(noise({outer, n}, static_cast<uint32_t>(n) + 1));
    }
    output(b, "y", concat(pieces, 1));
    compare(graph, nullptr, in, {}, 0);
  }
}

TEST(cpu_rows, two_norms) {
  Graph graph;
  Dim n = Dim::symbol("n");
  ASSERT_TRUE(graph.declare_symbol("n", {0, 400}).ok());
  Builder b(graph);
  Expr x = input(b, "x", {n, 7, 33});
  output(b, "all", b.op(Op::kReduceL2, {x}, {}));
  output(b, "kept", b.op(Op::kReduceL2, {x}, {{"keep_dims", true}}));
  output(b, "rows", b.op(Op::kReduceL2, {x}, {{"axes", std::vector<int64_t>{2}}}));
  output(b, "middle", b.op(Op::kReduceL2, {x}, {{"axes", std::vector<int64_t>{1}}}));
  output(b, "ends", b.op(Op::kReduceL2, {x}, {{"axes", std::vector<int64_t>{0, 2}}}));
  for (int64_t size : {400, 5, 1, 0}) {
    std::string report = compare(graph, nullptr, {noise({size, 7, 33})});
    EXPECT_NE(report.find("\"norm_f32\""), std::string::npos) << report;
  }
}

TEST(cpu_rows, picks_by_tuples_shifts_and_f64_in_whole_numbers) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {2, 3, 4, 5});
  Tensor picks = *Tensor::create(DType::kI64, std::array<int64_t, 3>{2, 6, 2});
  for (int i = 0; i < 24; i++) picks.as<int64_t>()[i] = i % 2 - (i % 3 == 0);
  Expr index = b.wrap(*graph.add_input("i", DType::kI64, {2, 6, 2}));
  output(b, "batches", b.op(Op::kGatherNd, {x, index}, {{"batch_dims", int64_t{1}}}));
  output(b, "tuples", b.op(Op::kGatherNd, {x, index}, {}));
  output(b, "shifted", cast(b.op(Op::kShl, {index, index}, {}), DType::kF32));
  output(b, "halves", cast(cast(index, DType::kF16), DType::kF32));
  output(b, "floor", cast(b.op(Op::kFloor, {cast(x, DType::kF64) * 3.0}, {}), DType::kF32));
  output(b, "round", cast(b.op(Op::kRound, {cast(x, DType::kF64) * 3.0}, {}), DType::kF32));
  std::string report = compare(graph, nullptr, {noise({2, 3, 4, 5}), picks});
  EXPECT_NE(report.find("gather_tuples"), std::string::npos) << report;
  EXPECT_EQ(report.find("reference"), std::string::npos) << report;
}

// Along the first axis, whose size is open, a middle one and the last one of a view; by indices of both dtypes.
TEST(cpu_rows, weighted_sums_along_every_axis) {
  for (DType dtype : {DType::kI32, DType::kI64})
    for (int64_t n : {1, 6}) {
      Graph graph;
      ASSERT_TRUE(graph.declare_symbol("n", {0, 9}).ok());
      Builder b(graph);
      Expr x = input(b, "x", {Dim::symbol("n"), 7, 5}), w = input(b, "w", {4, 2});
      Expr i = b.wrap(*graph.add_input("i", dtype, {4, 2}));
      output(b, "first", b.op(Op::kGatherSum, {x, i, w}, {{"axis", int64_t{0}}}));
      output(b, "middle", b.op(Op::kGatherSum, {x, i, w}, {{"axis", int64_t{1}}}));
      output(b, "last", b.op(Op::kGatherSum, {transpose(x, {2, 0, 1}), i, w}, {{"axis", int64_t{2}}}));
      Tensor index = *Tensor::create(DType::kI64, std::array<int64_t, 2>{4, 2});
      for (int64_t k = 0; k < 8; k++) index.as<int64_t>()[k] = k * 5 % n;
      Tensor narrow = *Tensor::create(DType::kI32, std::array<int64_t, 2>{4, 2});
      std::copy_n(index.as<int64_t>(), 8, narrow.as<int32_t>());
      Tensor given = dtype == DType::kI64 ? index : narrow;
      std::string report = compare(graph, nullptr, {noise({n, 7, 5}), noise({4, 2}, 5), given});
      EXPECT_NE(report.find("gather_sum_f32"), std::string::npos) << report;
      EXPECT_EQ(report.find("reference"), std::string::npos) << report;
    }
}

TEST(cpu_rows, suppressed_boxes_equal_the_reference) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 40}).ok());
  Builder b(graph);
  Expr boxes = input(b, "boxes", {2, Dim::symbol("n"), 4}), scores = input(b, "scores", {2, 3, Dim::symbol("n")});
  Outputs rows = b.ops(Op::kNonMaxSuppression, {boxes, scores},
                       {{"max_out", int64_t{4}}, {"iou", 0.2}, {"score", 0.0}, {"bounded", int64_t{1}}});
  output(b, "rows", cast(rows[0], DType::kF32));
  output(b, "count", cast(rows[1], DType::kF32));
  for (int64_t n : {0, 1, 37}) {
    std::string report = compare(graph, nullptr, {noise({2, n, 4}), noise({2, 3, n}, 5)});
    EXPECT_NE(report.find("keep_boxes"), std::string::npos) << report;
  }
}

TEST(cpu_rows, an_index_out_of_range_is_named) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {5, 4});
  Expr index = b.wrap(*graph.add_input("i", DType::kI32, {2}));
  auto picked = graph.add(Op::kGather, std::array{x.value(), index.value()}, {}, "pick");
  output(b, "y", b.wrap(*picked));
  Tensor bad = *Tensor::create(DType::kI32, std::array<int64_t, 1>{2});
  bad.as<int32_t>()[1] = 5;
  auto env = env_with(1);
  auto run = [&](const char* bounds) {
    auto program = *Program::compile(env, graph, nullptr, nullptr, {{"bounds", bounds}});
    return program->run({}, std::array{noise({5, 4}), bad}, {}, 1);
  };
  auto failed = run("error");
  EXPECT_EQ(failed.status().code(), Code::kRange);
  EXPECT_EQ(failed.status().message(), "gather 'pick': index 5 at position 1 is outside a size of 5");
  EXPECT_EQ((*run("clamp"))[0].as<float>()[4], noise({5, 4}).as<float>()[16]);
  EXPECT_EQ((*run("drop"))[0].as<float>()[4], 0.0f);
}

// The user knows the composite, not the ops in its place.
TEST(cpu_rows, an_index_out_of_range_in_a_composite_names_it) {
  auto parsed = parse(R"(graph {
  x = input f32[3,4]
  i = input i64[3]
  loss = softmax_cross_entropy(x, i) axis=1
  output loss
})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  Tensor bad = *Tensor::create(DType::kI64, std::array<int64_t, 1>{3});
  bad.as<int64_t>()[1] = 5;
  auto env = env_with(1);
  for (const char* device : {"cpu", "reference"}) {
    auto program = Program::compile(env, *parsed, nullptr, *env->find_device(device), {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto failed = (*program)->run({}, std::array{noise({3, 4}), bad}, {}, 1);
    EXPECT_EQ(failed.status().message(), "gather_elements 'loss': index 5 at position 1 is outside a size of 4")
        << device;
  }
}

}  // namespace rlx
