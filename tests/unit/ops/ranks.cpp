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

// Each operand has one row for each splat. Nothing else would see that one has a row more.
TEST(ranks, splats_with_a_row_too_many_are_refused) {
  auto numbers = [](Sizes dims) {
    return f32s(dims, std::vector<double>(static_cast<size_t>(dims.size() == 2 ? dims[0] * dims[1] : dims[0]), 1));
  };
  const char* names[] = {"mean2d", "conic", "depth", "color", "alpha", "radius", "valid"};
  for (size_t larger = 0; larger < 7; larger++) {
    auto rows = [&](size_t operand) { return operand == larger ? int64_t{3} : int64_t{2}; };
    std::vector<Tensor> in{numbers({rows(0), 2}),
                           numbers({rows(1), 3}),
                           numbers({rows(2)}),
                           numbers({rows(3), 3}),
                           numbers({rows(4)}),
                           numbers({rows(5)}),
                           tensor(DType::kBool, {rows(6)}, std::vector<double>(static_cast<size_t>(rows(6)), 1))};
    const char* wrong = larger == 2 ? "mean2d" : names[larger];  // the others follow the depths
    expect_failure(Op::kGaussianSplatRasterize, in, {{"width", int64_t{2}}, {"height", int64_t{2}}}, Code::kShape,
                   wrong);
  }
}

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
      {"unpack_bits", {u8s({}, {1})}, {{"bits", int64_t{4}}}, Code::kShape, "x needs rank 1 or more, not 0"},
      {"linear", {scale, f32s({1, 1}, {1})}, {}, Code::kShape, "x needs rank 1 or more, not 0"},
      {"gather_nd", {one, i64s({}, {0})}, {}, Code::kShape, "idx needs rank 1 or more, not 0"},
      {"iota",
       {},
       {{"shape", std::vector<Dim>()}, {"axis", int64_t{0}}, {"dtype", DType::kI64}},
       Code::kShape,
       "shape needs rank 1 or more, not 0"},
      {"lrn", {one}, {{"size", int64_t{1}}}, Code::kShape, "it has rank 1"},
      {"conv",
       {f32s({1, 1, 1, 1, 1, 1}, {1}), f32s({1, 1, 1, 1, 1, 1}, {1})},
       {},
       Code::kShape,
       "x needs rank 3, 4 or 5"},
      {"grid_sample",
       {f32s({1, 1, 1, 1, 1, 1}, {1}), f32s({1, 1, 1, 1, 1, 4}, {0, 0, 0, 0})},
       {},
       Code::kShape,
       "x and grid need rank 3, 4 or 5"},
      {"dot_general",
       {f32s({1, 1}, {1}), f32s({1, 1}, {1})},
       {{"batch_a", List{0}}, {"batch_b", List{0}}, {"contract_a", List{0}}, {"contract_b", List{1}}},
       Code::kInvalidArgument,
       "axis 0 is a batch axis and contracted, too"},
      {"dynamic_range", {one, scale, scale}, {}, Code::kShape, "start must be a scalar, not of rank 1"},
      {"dynamic_range", {scale, one, scale}, {}, Code::kShape, "limit must be a scalar, not of rank 1"},
      {"dynamic_range", {scale, scale, one}, {}, Code::kShape, "step must be a scalar, not of rank 1"},
      {"moe_ffn",
       {f32s({1, 1}, {1}), f32s({1, 1, 1}, {1}), f32s({1, 1, 1}, {1}), i64s({1}, {0}), one},
       {},
       Code::kShape,
       "idx needs rank 2, not 1"},
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

// Windows along 8 axes, of which three are longer than 1, against windows along these alone. A tensor cannot have two
// axes for each of the 8.
TEST(ranks, of_8_have_windows_along_all_axes) {
  struct Shape {
    List x, kernel, strides, lo, dilation;
    std::vector<Dim> dims(size_t first) const { return {x.begin() + static_cast<ptrdiff_t>(first), x.end()}; }
    NamedAttrs attrs(const char* kernel_name, size_t first = 0) const {
      auto tail = [&](const List& list) { return List(list.begin() + static_cast<ptrdiff_t>(first), list.end()); };
      List before = tail(lo);
      return {{kernel_name, tail(kernel)},
              {"strides", tail(strides)},
              {"dilation", tail(dilation)},
              {"pad_lo", std::vector<Dim>(before.begin(), before.end())}};
    }
  };
  const Shape shapes[] = {{{2, 3, 5, 4, 3}, {1, 1, 2, 3, 2}, {1, 1, 2, 1, 1}, {0, 0, 1, 1, 0}, {1, 1, 2, 1, 1}},
                          {{2, 3, 5, 1, 4, 1, 3, 1},
                           {1, 1, 2, 1, 3, 1, 2, 1},
                           {1, 1, 2, 1, 1, 1, 1, 1},
                           {0, 0, 1, 0, 1, 0, 0, 0},
                           {1, 1, 2, 1, 1, 1, 1, 1}}};
  std::vector<std::vector<double>> results[2];
  for (size_t i = 0; i < 2; i++) {
    const Shape& shape = shapes[i];
    std::vector<double> values;
    for (int64_t k = 0; k < 2 * 3 * 5 * 4 * 3; k++) values.push_back(static_cast<double>(k * 37 % 101));
    values[17] = values[200] = kNan;
    Tensor x = f32s(shape.x, values);
    auto note = [&](const char* op, const Tensor& from, const NamedAttrs& attrs) {
      auto got = run(op_named(op), {from}, attrs);
      ASSERT_TRUE(got.ok()) << op << ": " << got.status().message();
      for (const Tensor& result : *got) results[i].push_back(numbers(result));
    };
    note("max_pool_with_indices", x, shape.attrs("kernel", 2));
    for (const char* fn : {"max", "min"}) {
      NamedAttrs attrs = shape.attrs("window");
      attrs.emplace_back("fn", fn);
      note("arg_reduce_window", x, attrs);
    }
    note("im2col", x, shape.attrs("kernel", 2));
    NamedAttrs attrs = shape.attrs("kernel", 2);
    auto columns = run(op_named("im2col"), {x}, attrs);
    ASSERT_TRUE(columns.ok()) << columns.status().message();
    attrs.emplace_back("shape", shape.dims(2));
    note("col2im", (*columns)[0], attrs);
  }
  ASSERT_EQ(results[0].size(), 6u);
  for (size_t i = 0; i < results[0].size(); i++) {
    ASSERT_EQ(results[0][i].size(), results[1][i].size()) << i;
    for (size_t k = 0; k < results[0][i].size(); k++)
      EXPECT_TRUE(results[0][i][k] == results[1][i][k] ||
                  (std::isnan(results[0][i][k]) && std::isnan(results[1][i][k])))
          << i << ", " << k;
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
