// SPDX-License-Identifier: Apache-2.0
// Operands of a rank, or axes, that an op does not take are refused where it is added.
#include "op_test.h"

#include <cstring>

namespace rlx {
namespace {

using namespace test;
using List = std::vector<int64_t>;

Op op_named(std::string_view name) {
  return op_table().find(name)->op();
}

Tensor i8s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kI8, dims, numbers);
}
Tensor u8s(const Sizes& dims, const std::vector<double>& numbers) {
  return tensor(DType::kU8, dims, numbers);
}

struct Refusal {
  const char* op;
  std::vector<Tensor> in;
  NamedAttrs attrs;
  Code code;
  const char* says;
};

TEST(ranks, that_an_op_does_not_take_are_refused) {
  Tensor one = f32s({1}, {1}), zero = i8s({}, {0}), scale = f32s({}, {1});
  std::vector<double> bytes(32, 1);
  const Refusal refusals[] = {
      {"matmul_nbits",
       {f32s({1, 32}, bytes), u8s({1, 16}, std::vector<double>(16, 1)), f32s({1, 1}, {1})},
       {{"block", int64_t{32}}},
       Code::kShape,
       "packed needs rank 3"},
      {"matmul_nbits",
       {f32s({}, {1}), u8s({1, 1, 16}, std::vector<double>(16, 1)), f32s({1, 1}, {1})},
       {{"block", int64_t{32}}},
       Code::kShape,
       "x rank 1 or more"},
      {"q_matmul",
       {i8s({2}, {1, 2}), i8s({2, 1}, {1, 2}), zero, zero, Tensor(), scale, zero},
       {},
       Code::kShape,
       "x and w need rank 2 or more"},
      {"unpack_bits", {u8s({}, {1})}, {{"bits", int64_t{4}}}, Code::kShape, "x needs rank 1 or more"},
      {"iota",
       {},
       {{"shape", std::vector<Dim>()}, {"axis", int64_t{0}}, {"dtype", DType::kI64}},
       Code::kShape,
       "shape needs rank 1 or more"},
      {"lrn", {one}, {{"size", int64_t{1}}}, Code::kShape, "it has rank 1"},
      {"conv",
       {f32s({1, 1, 1, 1, 1, 1}, {1}), f32s({1, 1, 1, 1, 1, 1}, {1})},
       {},
       Code::kShape,
       "x needs rank 3, 4 or 5"},
      {"dot_general",
       {f32s({1, 1}, {1}), f32s({1, 1}, {1})},
       {{"batch_a", List{0}}, {"batch_b", List{0}}, {"contract_a", List{0}}, {"contract_b", List{1}}},
       Code::kInvalidArgument,
       "axis 0 is a batch axis and contracted, too"},
  };
  for (const Refusal& it : refusals) {
    SCOPED_TRACE(it.op);
    expect_failure(op_named(it.op), it.in, it.attrs, it.code, it.says);
  }
}

// Ops that need one more axis on the way. The first operand has 8 axes, then 7.
TEST(ranks, of_8_give_what_lower_ones_give) {
  struct Case {
    const char* op;
    DType dtype;
    NamedAttrs attrs;
    Sizes others = {};  // of the second operand; empty: there is none
  };
  const Case cases[] = {
      {"complex", DType::kF32, {}, {1, 4}},
      {"real", DType::kC64, {}},
      {"imag", DType::kC128, {}},
      {"conj", DType::kC64, {}},
      {"angle", DType::kC64, {}},
      {"abs_squared", DType::kC64, {}},
      {"rfft", DType::kF32, {{"axis", int64_t{-2}}}},
      {"irfft", DType::kC64, {{"axis", int64_t{-1}}}},
      {"resize", DType::kF32, {{"mode", "linear"}, {"axes", List{-2, -1}}, {"scales", std::vector<double>{2, 1.5}}}},
      {"unpack_bits", DType::kU8, {{"bits", int64_t{4}}}},
      {"quantize_linear",
       DType::kF32,
       {{"axis", int64_t{-1}}, {"block_size", int64_t{3}}, {"dtype", DType::kI8}},
       {3, 2}},
      {"dequantize_linear", DType::kI8, {{"axis", int64_t{-2}}, {"block_size", int64_t{2}}}, {2, 4}},
  };
  for (const Case& it : cases) {
    SCOPED_TRACE(it.op);
    std::vector<Tensor> results;
    for (const Sizes& front : {Sizes{2, 1, 2, 1, 1, 1}, Sizes{2, 1, 2, 1, 1}}) {
      auto filled = [&](DType dtype, const Sizes& back) {
        Sizes dims = front;
        dims.insert(dims.end(), back.begin(), back.end());
        Tensor tensor = *Tensor::create(dtype, dims);
        DType part = dtype == DType::kC64 ? DType::kF32 : dtype == DType::kC128 ? DType::kF64 : dtype;
        auto count = static_cast<int64_t>(tensor.bytes()) / element_bytes(part);
        visit<dtypes::N>(part, [&]<class T>() {
          for (int64_t i = 0; i < count; i++) tensor.as<T>()[i] = T(static_cast<Compute<T>>(1 + i % 7));
        });
        return tensor;
      };
      std::vector<Tensor> in{filled(it.dtype, {3, 4})};
      if (!it.others.empty()) in.push_back(filled(DType::kF32, it.others));
      auto got = run(op_named(it.op), in, it.attrs);
      ASSERT_TRUE(got.ok()) << got.status().message();
      results.push_back((*got)[0]);
    }
    EXPECT_EQ(results[0].rank(), 8u);
    ASSERT_EQ(results[0].bytes(), results[1].bytes());
    EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].bytes()), 0);
  }
}

// Here both operands and their scales have all axes.
TEST(ranks, of_8_are_scaled_by_blocks) {
  std::vector<Tensor> products;
  for (const Sizes& front : {Sizes{1, 2, 1, 1, 1, 1}, Sizes{1, 2, 1, 1, 1}}) {
    auto of = [&](int64_t rows, int64_t columns, double step) {
      Sizes dims = front;
      dims.insert(dims.end(), {rows, columns});
      std::vector<double> numbers;
      for (int64_t i = 0; i < 2 * rows * columns; i++) numbers.push_back(1 + step * static_cast<double>(i));
      return f32s(dims, numbers);
    };
    auto got = run(op_named("scaled_matmul"), {of(3, 4, 1), of(2, 4, 2), of(3, 2, .5), of(2, 2, .25)},
                   {{"block", int64_t{2}}});
    ASSERT_TRUE(got.ok()) << got.status().message();
    products.push_back((*got)[0]);
  }
  EXPECT_EQ(numbers(products[0]), numbers(products[1]));
}

}  // namespace
}  // namespace rlx
