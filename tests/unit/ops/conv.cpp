// SPDX-License-Identifier: Apache-2.0
// conv: golden values, empty operands, symbolic sizes, and what it refuses.
#include "op_test.h"

namespace rlx::test {

static std::vector<double> count_up(int64_t n, double first = 0) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < n; i++) numbers.push_back(first + static_cast<double>(i));
  return numbers;
}

using List = std::vector<int64_t>;

TEST(conv, golden_values) {
  expect_op(Op::kConv, {f32s({1, 1, 4}, {1, 2, 3, 4}), f32s({1, 1, 3}, {1, 2, 3})},
            {{"lhs_dilation", List{2}}, {"pad_lo", List{1}}, {"pad_hi", List{2}}},
            f32s({1, 1, 8}, {2, 7, 4, 11, 6, 15, 8, 4}));
  expect_op(Op::kConv, {f32s({1, 1, 4, 4}, count_up(16)), f32s({1, 1, 2, 2}, {1, 0, 0, -1})},
            {{"strides", List{2, 1}}, {"pad_lo", List{1, 0}}, {"pad_hi", List{0, 1}}, {"rhs_dilation", List{1, 2}}},
            f32s({1, 1, 2, 3}, {-2, -3, 0, -6, -6, 6}));
  expect_op(Op::kConv, {f32s({1, 4, 2}, count_up(8)), f32s({4, 2, 1}, count_up(8))}, {{"groups", int64_t{2}}},
            f32s({1, 4, 2}, {2, 3, 6, 11, 46, 55, 66, 79}));
}

TEST(conv, eight_bit_operands_sum_in_i32_and_i32_wraps) {
  expect_op(Op::kConv, {tensor(DType::kU8, {1, 1, 2}, {255, 255}), tensor(DType::kI8, {1, 1, 2}, {-128, -128})}, {},
            i32s({1, 1, 1}, {-65280}));
  expect_op(Op::kConv, {i32s({1, 1, 1}, {1 << 30}), i32s({1, 1, 1}, {4})}, {}, i32s({1, 1, 1}, {0}));
}

TEST(conv, of_nothing_is_zero_and_negative_pads_crop) {
  expect_op(Op::kConv, {f64s({1, 0, 2}, {}), f64s({2, 0, 1}, {})}, {}, f64s({1, 2, 2}, {0, 0, 0, 0}));
  expect_op(Op::kConv, {f64s({1, 1, 0}, {}), f64s({1, 1, 1}, {2})}, {{"pad_lo", List{2}}, {"lhs_dilation", List{3}}},
            f64s({1, 1, 2}, {0, 0}));
  expect_op(Op::kConv, {f64s({1, 1, 1}, {5}), f64s({1, 1, 3}, {1, 1, 1})}, {}, f64s({1, 1, 0}, {}));
  expect_op(Op::kConv, {f64s({1, 1, 5}, {1, 2, 3, 4, 5}), f64s({1, 1, 1}, {2})},
            {{"pad_lo", List{-1}}, {"pad_hi", List{-2}}}, f64s({1, 1, 2}, {4, 6}));
}

TEST(conv, three_axes_equal_a_product_where_the_window_is_all) {
  expect_op(Op::kConv, {f64s({1, 1, 2, 2, 2}, count_up(8, 1)), f64s({1, 1, 2, 2, 2}, count_up(8, 1))}, {},
            f64s({1, 1, 1, 1, 1}, {204}));
}

TEST(conv_transpose, refuses_what_it_cannot_mean) {
  expect_failure(Op::kConvTranspose, {f32s({1, 2}, {1, 2}), f32s({1, 2}, {1, 2})}, {}, Code::kShape, "not 2 and 2");
}

TEST(conv, refuses_what_it_cannot_mean) {
  Tensor x = f32s({1, 2, 3}, count_up(6)), w = f32s({2, 2, 1}, count_up(4));
  expect_failure(Op::kConv, {x, tensor(DType::kF64, {2, 2, 1}, count_up(4))}, {}, Code::kDtype,
                 "f32 with weights of f64");
  expect_failure(Op::kConv, {i64s({1, 1, 1}, {1}), i64s({1, 1, 1}, {1})}, {}, Code::kDtype, "i64");
  expect_failure(Op::kConv, {x, w}, {{"groups", int64_t{2}}}, Code::kShape, "channels");
  expect_failure(Op::kConv, {f32s({1, 4, 1}, count_up(4)), f32s({3, 2, 1}, count_up(6))}, {{"groups", int64_t{2}}},
                 Code::kShape, "output channels over the groups");
  expect_failure(Op::kConv, {x, w}, {{"strides", List{1, 1}}}, Code::kOption, "one entry per spatial axis");
  expect_failure(Op::kConv, {x, w}, {{"strides", List{0}}}, Code::kOption, "strides");
  expect_failure(Op::kConv, {x, f32s({2, 2}, count_up(4))}, {}, Code::kShape, "w needs rank 3, that of x");
}

}  // namespace rlx::test
