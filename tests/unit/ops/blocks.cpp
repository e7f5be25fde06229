// SPDX-License-Identifier: Apache-2.0
// Block-quantised types: golden values, and their use by dequantize, matmul and gather.
#include "ops/blocks.h"
#include "op_test.h"

namespace rlx::test {

struct Golden {
  DType dtype;
  std::vector<std::pair<int, std::vector<int>>> fields;  // bytes written over the pattern, at an offset
  double sum;
  std::vector<std::pair<int, double>> elements;
};

// f16 0.5 and 0.25, and f32 0.5, as bytes.
static const std::vector<int> kHalf{0x00, 0x38}, kQuarter{0x00, 0x34}, kHalf32{0, 0, 0, 0x3f};

static std::vector<std::pair<int, double>> at(const std::vector<int>& places, const std::vector<double>& values) {
  std::vector<std::pair<int, double>> pairs;
  for (size_t i = 0; i < places.size(); i++) pairs.emplace_back(places[i], values[i]);
  return pairs;
}

static std::vector<Golden> goldens() {
  std::vector<int> small{0, 1, 15, 16, 31}, large{0, 1, 31, 32, 100, 128, 200, 255};
  return {
      {DType::kQ4_0, {{0, kHalf}}, -10.5, at(small, {-1.5, 1, -4, -1.5, 0})},
      {DType::kQ4_1, {{0, kHalf}, {2, kQuarter}}, 130.5, at(small, {7.75, 2.25, 5.25, 4.75, 6.25})},
      {DType::kQ5_0, {{0, kHalf}}, 7.5, at(small, {4.5, -1, -6, 7, 0.5})},
      {DType::kQ5_1, {{0, kHalf}, {2, kQuarter}}, 260.5, at(small, {9.75, 12.25, 15.25, 9.75, 2.75})},
      {DType::kQ8_0, {{0, kHalf}}, -88, at(small, {42.5, 61, -64, -45.5, -24})},
      {DType::kIQ4_NL, {{0, kHalf}}, -128.5, at(small, {-17.5, 12.5, -63.5, -17.5, 0.5})},
      {DType::kMXFP4, {{0, {126}}}, 6.25, at(small, {0, 1.5, -0.75, 0.75, 1.5})},
      {DType::kNVFP4,
       {{0, {0x30, 0x38, 0x08, 0x01}}},
       1.74511719,
       at({0, 1, 8, 16, 63}, {-3, 1, -0.25, 6, 0.0009765625})},
      {DType::kQ2_K, {{80, kHalf}, {82, kQuarter}}, 1029.5, at(large, {16.5, 0, -0.75, 3.75, 10, 3.75, 4, 2.25})},
      {DType::kQ3_K, {{108, kHalf}}, 479, at(large, {40.5, -54, 32, -11, 0, 1, 12.5, 21})},
      {DType::kQ4_K,
       {{0, kHalf}, {2, kQuarter}},
       27220,
       at(large, {157.75, -12.75, 80.25, 4, 47.5, 211.5, 69.25, 24.25})},
      {DType::kQ5_K,
       {{0, kHalf}, {2, kQuarter}},
       58108,
       at(large, {405.75, -12.75, 80.25, 56, 117.5, 523.5, 69.25, 54.25})},
      {DType::kQ6_K, {{208, kHalf}}, 2306, at(large, {-715.5, 848, -48, 115.5, 1261.5, -175.5, 544.5, -30})},
      {DType::kQ8_K, {{0, kHalf32}}, -64, at(large, {-48.5, -30, 13, 31.5, 9.5, 15.5, -60.5, 61})},
      {DType::kIQ4_XS, {{0, kHalf}}, -5502.5, at(large, {32.5, -0.5, 17.5, 227.5, 20, -292.5, 570, -8})},
  };
}

static std::vector<std::byte> golden_block(const Golden& golden) {
  std::vector<std::byte> bytes;
  for (int k = 0; k < info(golden.dtype).bytes; k++) bytes.push_back(static_cast<std::byte>(37 * k + 11));
  for (const auto& [offset, field] : golden.fields)
    for (size_t i = 0; i < field.size(); i++) bytes[static_cast<size_t>(offset) + i] = static_cast<std::byte>(field[i]);
  return bytes;
}

// `rows` blocks, the first golden, the others with other low bytes.
static Tensor block_rows(const Golden& golden, int64_t rows) {
  int64_t block = info(golden.dtype).block, bytes = info(golden.dtype).bytes;
  Tensor tensor = *Tensor::create(golden.dtype, std::array{rows, block});
  std::vector<std::byte> first = golden_block(golden);
  for (int64_t i = 0; i < rows * bytes; i++) tensor.data()[i] = first[static_cast<size_t>(i % bytes)];
  for (int64_t row = 1; row < rows; row++) tensor.data()[row * bytes + bytes - 3] ^= static_cast<std::byte>(row);
  return tensor;
}

// One op whose quantised operand is a constant.
static Result<Tensor> run_with_blocks(Op op, std::vector<Tensor> in, NamedAttrs attrs, EvalOptions options = {}) {
  Graph graph;
  std::vector<Value> values;
  for (const Tensor& tensor : in) values.push_back(RLX_TRY(graph.add_constant(tensor)));
  Value y = RLX_TRY(graph.add(op, values, std::move(attrs)));
  RLX_TRY(graph.add_output("y", y));
  std::vector<Tensor> results = RLX_TRY(interpret(graph, {}, {}, options));
  return results[0];
}

TEST(blocks, golden_values_of_every_type) {
  ASSERT_EQ(goldens().size(), 15u);
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(name(golden.dtype));
    auto y = run_with_blocks(Op::kDequantize, {block_rows(golden, 1)}, {});
    ASSERT_TRUE(y.ok()) << y.status().message();
    EXPECT_EQ(y->dtype(), DType::kF32);
    double sum = 0;
    for (double value : numbers(*y)) sum += value;
    EXPECT_NEAR(sum, golden.sum, 1e-8 * std::fabs(golden.sum));
    for (auto [i, value] : golden.elements) EXPECT_EQ(element_as_f64(*y, i), value) << "element " << i;
  }
}

TEST(blocks, other_output_dtypes_are_the_f32_values_cast) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(name(golden.dtype));
    Tensor blocks = block_rows(golden, 2), values = *run_with_blocks(Op::kDequantize, {blocks}, {});
    for (DType dtype : {DType::kF16, DType::kBF16, DType::kF64}) {
      auto y = run_with_blocks(Op::kDequantize, {blocks}, {{"out_dtype", dtype}});
      ASSERT_TRUE(y.ok()) << y.status().message();
      expect_equal(*y, tensor(dtype, {2, info(golden.dtype).block}, numbers(values)));
    }
  }
}

TEST(blocks, an_mxfp4_exponent_of_255_is_nan) {
  Tensor blocks = *Tensor::create(DType::kMXFP4, std::array<int64_t, 1>{32});
  blocks.data()[0] = std::byte{255};
  EXPECT_TRUE(std::isnan(element_as_f64(*run_with_blocks(Op::kDequantize, {blocks}, {}), 7)));
}

TEST(blocks, matmul_multiplies_by_the_decoded_rows) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(name(golden.dtype));
    int64_t block = info(golden.dtype).block;
    Tensor blocks = block_rows(golden, 3), weights = *run_with_blocks(Op::kDequantize, {blocks}, {});
    std::vector<double> ones(static_cast<size_t>(2 * block), 1);
    for (size_t i = 0; i < ones.size(); i += 3) ones[i] = -0.5;
    Tensor a = f32s({2, block}, ones);
    NamedAttrs flipped{{"transpose_b", int64_t{1}}};
    for (auto mode : {EvalMode::kTyped, EvalMode::kOracle}) {
      auto direct = run_with_blocks(Op::kMatmul, {a, blocks}, flipped, {mode});
      auto decoded = run_with_blocks(Op::kMatmul, {a, weights}, flipped, {mode});
      ASSERT_TRUE(direct.ok()) << direct.status().message();
      expect_equal(*direct, *decoded);
    }
    auto half = run_with_blocks(Op::kMatmul, {tensor(DType::kF16, {2, block}, ones), blocks},
                                {{"transpose_b", int64_t{1}}, {"out_dtype", "f32"}});
    expect_equal(*half, *run_with_blocks(Op::kMatmul, {a, weights}, flipped));
    EXPECT_FALSE(run_with_blocks(Op::kMatmul, {a, blocks}, {}).ok());
  }
}

TEST(blocks, gather_decodes_the_picked_rows) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(name(golden.dtype));
    Tensor blocks = block_rows(golden, 4), weights = *run_with_blocks(Op::kDequantize, {blocks}, {});
    Tensor picks = i64s({3}, {2, -1, 0});
    auto rows = run_with_blocks(Op::kGather, {blocks, picks}, {});
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    expect_equal(*rows, *run_with_blocks(Op::kGather, {weights, picks}, {}));
    auto dropped = run_with_blocks(Op::kGather, {blocks, i64s({1}, {4})}, {}, {.bounds = Bounds::kDrop});
    for (double value : numbers(*dropped)) EXPECT_EQ(value, 0);
    EXPECT_EQ(run_with_blocks(Op::kGather, {blocks, i64s({1}, {4})}, {}).status().code(), Code::kRange);
    EXPECT_EQ(run_with_blocks(Op::kGather, {blocks, picks}, {{"axis", int64_t{1}}}).status().code(), Code::kShape);
  }
}

}  // namespace rlx::test
