// SPDX-License-Identifier: Apache-2.0
// Padding in all modes, and slices at the edges of what their bounds may be.
#include "op_test.h"
#include "passes/at_sizes.h"

namespace rlx::test {

static NamedAttrs pad(std::vector<int64_t> lo, std::vector<int64_t> hi, const char* mode = "constant",
                      std::vector<int64_t> interior = {}) {
  NamedAttrs attrs{{"lo", lo}, {"hi", hi}, {"mode", mode}};
  if (!interior.empty()) attrs.emplace_back("interior", interior);
  return attrs;
}

TEST(pad, golden_values) {
  Tensor x = f32s({3}, {1, 2, 3});
  expect_op(Op::kPad, {x}, pad({1}, {-1}, "constant", {1}), f32s({5}, {0, 1, 0, 2, 0}));
  expect_op(Op::kPad, {x}, pad({4}, {3}, "reflect"), f32s({10}, {1, 2, 3, 2, 1, 2, 3, 2, 1, 2}));
  expect_op(Op::kPad, {x}, pad({2}, {4}, "wrap"), f32s({9}, {2, 3, 1, 2, 3, 1, 2, 3, 1}));
  expect_op(Op::kPad, {x}, pad({2}, {1}, "edge"), f32s({6}, {1, 1, 1, 2, 3, 3}));
}

TEST(pad, axes_are_independent_and_a_crop_past_everything_is_empty) {
  Tensor x = i32s({2, 2}, {1, 2, 3, 4});
  expect_op(Op::kPad, {x, i32s({}, {9})}, pad({1, 0}, {0, 1}), i32s({3, 3}, {9, 9, 9, 1, 2, 9, 3, 4, 9}));
  expect_op(Op::kPad, {x}, pad({-1, 0}, {0, -1}), i32s({1, 1}, {3}));
  expect_op(Op::kPad, {x}, pad({-5, 0}, {0, 0}), i32s({0, 2}, {}));
  expect_op(Op::kPad, {x}, pad({-3, 0}, {4, 0}, "wrap"), i32s({3, 2}, {3, 4, 1, 2, 3, 4}));
  expect_op(Op::kPad, {bools({}, {1})}, pad({}, {}), bools({}, {1}));
}

TEST(pad, of_nothing_and_of_one_element) {
  expect_op(Op::kPad, {f64s({0}, {}), f64s({}, {7})}, pad({1}, {1}, "constant", {3}), f64s({2}, {7, 7}));
  expect_op(Op::kPad, {f64s({0}, {})}, pad({0}, {0}, "edge"), f64s({0}, {}));
  expect_op(Op::kPad, {f64s({0}, {})}, pad({1}, {-1}, "wrap"), f64s({0}, {}));
  expect_op(Op::kPad, {f64s({1}, {5})}, pad({2}, {1}, "reflect"), f64s({4}, {5, 5, 5, 5}));
  expect_failure(Op::kPad, {f64s({0}, {})}, pad({1}, {0}, "reflect"), Code::kShape, "nothing to pad with");
  expect_failure(Op::kPad, {f64s({0}, {})}, pad({0}, {1}, "reflect"), Code::kShape, "nothing to pad with");
  auto symbolic = run(Op::kPad, {f64s({0}, {})}, pad({1}, {0}, "wrap"), {}, true);
  EXPECT_EQ(symbolic.status().code(), Code::kShape);
}

TEST(pad, refuses_what_it_cannot_mean) {
  Tensor x = f32s({2}, {1, 2});
  expect_failure(Op::kPad, {x}, pad({1, 1}, {0}), Code::kOption, "one entry per axis");
  expect_failure(Op::kPad, {x}, pad({1}, {0}, "edge", {1}), Code::kOption, "interior");
  expect_failure(Op::kPad, {x, f32s({}, {0})}, pad({1}, {0}, "edge"), Code::kInvalidArgument, "takes no value");
  expect_failure(Op::kPad, {x, f32s({1}, {0})}, pad({1}, {0}), Code::kShape, "scalar");
}

static NamedAttrs slice(int64_t start, int64_t end, int64_t step) {
  return {{"starts", std::vector<int64_t>{start}},
          {"ends", std::vector<int64_t>{end}},
          {"steps", std::vector<int64_t>{step}}};
}

TEST(slice, golden_values) {
  Tensor x = i64s({6}, {0, 1, 2, 3, 4, 5});
  expect_op(Op::kSlice, {x}, slice(4, 1, -2), i64s({2}, {4, 2}));
  expect_op(Op::kSlice, {x}, slice(-1, -7, -1), i64s({6}, {5, 4, 3, 2, 1, 0}));
  expect_op(Op::kSlice, {x}, slice(2, -9, -1), i64s({3}, {2, 1, 0}));
  expect_op(Op::kSlice, {x}, slice(7, 9, 1), i64s({0}, {}));
}

TEST(slice, bounds_and_steps_that_exceed_every_size) {
  Tensor x = i64s({3}, {0, 1, 2});
  expect_op(Op::kSlice, {x}, slice(1, INT64_MAX, INT64_MAX), i64s({1}, {1}));
  expect_op(Op::kSlice, {x}, slice(-1, INT64_MIN, INT64_MIN), i64s({1}, {2}));
  expect_op(Op::kSlice, {x}, slice(INT64_MIN, INT64_MAX, 1), x);
  expect_op(Op::kSlice, {i64s({0}, {})}, slice(-1, INT64_MIN, -1), i64s({0}, {}));
  expect_failure(Op::kSlice, {x}, slice(0, 1, 0), Code::kOption, "a step must not be 0");
}

TEST(slice, the_length_of_a_reversed_axis_is_the_axis) {
  Graph graph;
  Value x = *graph.add_input("x", DType::kF32, {Dim::symbol("n")});
  auto y = graph.add(Op::kSlice, std::array{x}, slice(-1, INT64_MIN, -1));
  ASSERT_TRUE(y.ok());
  EXPECT_EQ(text_of(graph.type(*y)), "f32[n]");
}

// What may be negative gets a guard (semantics.md S4): a symbolic bound never counts from the end, at fixed sizes
// either.
TEST(slice, a_bound_that_may_be_negative_is_checked_by_the_run) {
  Graph graph;
  Dim n = Dim::symbol("n");
  Value x = *graph.add_input("x", DType::kI64, {n});
  auto rest = [&](const Dim& start) {
    return NamedAttrs{{"starts", std::vector<Dim>{start}}, {"ends", std::vector<Dim>{n}}};
  };
  auto y = graph.add(Op::kSlice, std::array{x}, rest(n - Dim(2)));
  ASSERT_TRUE(y.ok()) << y.status().message();
  ASSERT_TRUE(graph.add_output("y", *y).ok());
  expect_equal(interpret(graph, std::array{i64s({3}, {0, 1, 2})})->at(0), i64s({2}, {1, 2}));
  EXPECT_EQ(interpret(graph, std::array{i64s({1}, {0})}).status().code(), Code::kShape);
  EXPECT_TRUE(at_sizes(graph, {{"n", 2}}).ok());
  EXPECT_EQ(at_sizes(graph, {{"n", 1}}).status().code(), Code::kShape);
  EXPECT_EQ(graph.add(Op::kSlice, std::array{x}, rest(Dim(-1) - n)).status().code(), Code::kShape);
}

}  // namespace rlx::test
