// SPDX-License-Identifier: Apache-2.0
// Folds along axes, over windows, and by order.
#include "op_test.h"

namespace rlx::test {

static NamedAttrs fold(const char* fn, int64_t axis, bool exclusive = false, bool reverse = false) {
  return {{"fn", fn}, {"axis", axis}, {"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}};
}

TEST(cumulative, golden_values) {
  Tensor x = f32s({4}, {1, 2, 3, 4});
  expect_op(Op::kCumulative, {x}, fold("sum", 0), f32s({4}, {1, 3, 6, 10}));
  expect_op(Op::kCumulative, {x}, fold("sum", 0, true), f32s({4}, {0, 1, 3, 6}));
  expect_op(Op::kCumulative, {x}, fold("sum", 0, true, true), f32s({4}, {9, 7, 4, 0}));
  expect_op(Op::kCumulative, {x}, fold("prod", 0, true, true), f32s({4}, {24, 12, 4, 1}));
  expect_op(Op::kCumulative, {x}, fold("max", 0, true), f32s({4}, {-kInf, 1, 2, 3}));
  expect_op(Op::kCumulative, {x}, fold("min", 0, true, true), f32s({4}, {2, 3, 4, kInf}));
}

TEST(cumulative, runs_along_one_axis_and_keeps_to_the_dtype) {
  Tensor x = i32s({2, 3}, {1, 5, 2, 4, 0, 6});
  expect_op(Op::kCumulative, {x}, fold("max", -1), i32s({2, 3}, {1, 5, 5, 4, 4, 6}));
  expect_op(Op::kCumulative, {x}, fold("sum", 0), i32s({2, 3}, {1, 5, 2, 5, 5, 8}));
  expect_op(Op::kCumulative, {tensor(DType::kI8, {2}, {100, 100})}, fold("sum", 0),
            tensor(DType::kI8, {2}, {100, -56}));
  expect_op(Op::kCumulative, {tensor(DType::kI8, {1}, {3})}, fold("max", 0, true), tensor(DType::kI8, {1}, {-128}));
  expect_op(Op::kCumulative, {f32s({3}, {1, kNan, 2})}, fold("min", 0), f32s({3}, {1, kNan, kNan}));
  expect_op(Op::kCumulative, {f32s({2, 0}, {})}, fold("sum", 0), f32s({2, 0}, {}));
  expect_failure(Op::kCumulative, {f32s({}, {1})}, fold("sum", 0), Code::kRange, "scalar");
  expect_failure(Op::kCumulative, {bools({1}, {1})}, fold("sum", 0), Code::kDtype, "bool");
}

TEST(reduce, of_nothing_gives_the_identity_and_of_no_axes_x) {
  auto attrs = [](const char* fn, std::vector<int64_t> axes) { return NamedAttrs{{"fn", fn}, {"axes", axes}}; };
  expect_op(Op::kReduce, {f32s({0, 2}, {})}, attrs("max", {0}), f32s({2}, {-kInf, -kInf}));
  expect_op(Op::kReduce, {i32s({0}, {})}, attrs("min", {0}), i32s({}, {2147483647}));
  expect_op(Op::kReduce, {bools({0}, {})}, attrs("min", {0}), bools({}, {1}));
  expect_op(Op::kReduce, {f32s({2}, {3, 4})}, attrs("sum", {}), f32s({2}, {3, 4}));
  expect_op(Op::kReduce, {f32s({}, {3})}, {{"fn", "prod"}}, f32s({}, {3}));
  expect_op(Op::kMean, {f32s({0}, {})}, {}, f32s({}, {kNan}));
}

TEST(sort, golden_values) {
  Tensor x = f32s({6}, {1, kNan, 3, 3, -1, kNan});
  expect_op(Op::kSort, {x}, {}, {f32s({6}, {-1, 1, 3, 3, kNan, kNan}), i64s({6}, {4, 0, 2, 3, 1, 5})});
  expect_op(Op::kSort, {x}, {{"descending", int64_t{1}}},
            {f32s({6}, {kNan, kNan, 3, 3, 1, -1}), i64s({6}, {1, 5, 2, 3, 0, 4})});
}

TEST(sort, along_any_axis_of_any_ordered_dtype) {
  Tensor x = i32s({3, 2}, {5, 1, 4, 9, 6, 0});
  expect_op(Op::kSort, {x}, {{"axis", int64_t{0}}},
            {i32s({3, 2}, {4, 0, 5, 1, 6, 9}), i64s({3, 2}, {1, 2, 0, 0, 2, 1})});
  expect_op(Op::kSort, {bools({3}, {1, 0, 1})}, {}, {bools({3}, {0, 1, 1}), i64s({3}, {1, 0, 2})});
  expect_op(Op::kSort, {f32s({2}, {0.0, -0.0})}, {}, {f32s({2}, {0, 0}), i64s({2}, {0, 1})});
  expect_op(Op::kSort, {f32s({2, 0}, {})}, {}, {f32s({2, 0}, {}), i64s({2, 0}, {})});
}

TEST(sort, i32_positions_need_an_axis_that_they_can_count) {
  auto attrs = NamedAttrs{{"index_dtype", "i32"}};
  auto fixed = run(Op::kSort, {f32s({2}, {2, 1})}, attrs);
  ASSERT_TRUE(fixed.ok());
  expect_equal((*fixed)[1], i32s({2}, {1, 0}));
  Graph graph;  // an open size is at most kLargestSymbol, which i32 counts; a product of two may be more
  Value x = *graph.add_input("x", DType::kF32, {Dim::symbol("n") * Dim::symbol("m")});
  EXPECT_EQ(graph.add(Op::kSort, {{x}}, attrs).status().code(), Code::kOption);
}

static NamedAttrs window(const char* fn, std::vector<int64_t> size, std::vector<int64_t> strides = {},
                         std::vector<int64_t> lo = {}, std::vector<int64_t> hi = {},
                         std::vector<int64_t> dilation = {}) {
  NamedAttrs attrs{{"fn", fn}, {"window", size}};
  if (!strides.empty()) attrs.emplace_back("strides", strides);
  if (!lo.empty()) attrs.emplace_back("pad_lo", lo);
  if (!hi.empty()) attrs.emplace_back("pad_hi", hi);
  if (!dilation.empty()) attrs.emplace_back("dilation", dilation);
  return attrs;
}

TEST(reduce_window, strides_pads_and_dilation) {
  Tensor x = f32s({6}, {1, 3, 2, 5, 4, 6});
  expect_op(Op::kReduceWindow, {x}, window("sum", {3}), f32s({4}, {6, 10, 11, 15}));
  expect_op(Op::kReduceWindow, {x}, window("max", {3}, {2}, {1}, {1}), f32s({3}, {3, 5, 6}));
  expect_op(Op::kReduceWindow, {x}, window("sum", {2}, {2}, {}, {}, {3}), f32s({2}, {6, 8}));
  expect_op(Op::kReduceWindow, {f32s({2, 2}, {1, 2, 3, 4})}, window("sum", {2, 1}), f32s({1, 2}, {4, 6}));
  // A window wholly outside gives the identity; one wider than everything leaves no position.
  expect_op(Op::kReduceWindow, {f32s({1}, {5})}, window("max", {1}, {1}, {1}, {1}), f32s({3}, {-kInf, 5, -kInf}));
  expect_op(Op::kReduceWindow, {f32s({2}, {1, 2})}, window("max", {4}), f32s({0}, {}));
  expect_op(Op::kReduceWindow, {f32s({3}, {1, kNan, 0})}, window("max", {2}), f32s({2}, {kNan, kNan}));
  expect_failure(Op::kReduceWindow, {x}, window("sum", {0}), Code::kOption);
  expect_failure(Op::kReduceWindow, {x}, window("sum", {2, 2}), Code::kOption, "one entry per axis");
  expect_failure(Op::kReduceWindow, {x}, window("sum", {2}, {}, {-1}), Code::kOption, "pad_lo");
}

TEST(select_and_scatter, golden_values_and_who_wins_a_tie) {
  Tensor x = f32s({5}, {2, 2, 1, 3, 3}), u = f32s({3}, {10, 20, 30});
  expect_op(Op::kSelectAndScatter, {x, u}, window("max", {3}), f32s({5}, {10, 0, 0, 50, 0}));
  expect_op(Op::kSelectAndScatter, {x, u}, window("min", {3}), f32s({5}, {0, 0, 60, 0, 0}));
  expect_op(Op::kSelectAndScatter, {f32s({3}, {9, kNan, kNan}), f32s({1}, {1})}, window("max", {3}),
            f32s({3}, {0, 1, 0}));
  expect_op(Op::kSelectAndScatter, {f32s({1}, {5}), u}, window("max", {1}, {1}, {1}, {1}), f32s({1}, {20}));
  expect_failure(Op::kSelectAndScatter, {x, f32s({2}, {1, 2})}, window("max", {3}), Code::kShape,
                 "one entry per window");
}

static NamedAttrs along(std::vector<int64_t> axes, bool keep_dims = false) {
  return {{"axes", std::move(axes)}, {"keep_dims", int64_t{keep_dims}}};
}

TEST(reduce, composites_equal_their_formulas) {
  Tensor x = f64s({2, 3}, {1, -2, 3, 0, 0, 0});
  expect_op(Op::kReduceL1, {x}, along({1}), f64s({2}, {6, 0}));
  expect_op(Op::kReduceL2, {x}, along({1}), f64s({2}, {std::sqrt(14.0), 0}));
  expect_op(Op::kSumSquare, {x}, along({1}, true), f64s({2, 1}, {14, 0}));
  expect_op(Op::kLogSum, {x}, along({1}), f64s({2}, {std::log(2.0), -kInf}));
  expect_op(Op::kMean, {x}, along({}), x);
  expect_op(Op::kAny, {bools({2, 2}, {0, 0, 0, 1})}, along({1}), bools({2}, {0, 1}));
  expect_op(Op::kAll, {bools({2, 0}, {})}, along({1}), bools({2}, {1, 1}));
  NamedAttrs unbiased = along({1});
  unbiased.emplace_back("correction", int64_t{1});
  expect_op(Op::kVar, {x}, along({1}), f64s({2}, {38.0 / 9, 0}), {}, 1e-15);
  expect_op(Op::kStd, {x}, unbiased, f64s({2}, {std::sqrt(19.0 / 3), 0}), {}, 1e-15);
  expect_op(Op::kVar, {f64s({2, 1}, {5, 6})}, unbiased, f64s({2}, {kNan, kNan}));
}

TEST(reduce, logsumexp_golden_values) {
  Tensor rows = f64s({4, 3}, {1, 2, 3, -kInf, 0, -kInf, 1000, 1000, -kInf, -kInf, -kInf, -kInf});
  expect_op(Op::kLogsumexp, {rows}, along({1}), f64s({4}, {3.407605964, 0, 1000.693147181, -kInf}), {}, 1e-9);
  expect_op(Op::kLogsumexp, {f64s({2}, {kInf, 0})}, along({0}, true), f64s({1}, {kInf}));
}

TEST(top_k, golden_values) {
  Tensor x = i32s({6}, {2, 5, 5, 1, 5, 2});
  expect_op(Op::kTopK, {x}, {{"k", int64_t{3}}}, {i32s({3}, {5, 5, 5}), i64s({3}, {1, 2, 4})});
  expect_op(Op::kTopK, {x}, {{"k", int64_t{3}}, {"largest", int64_t{0}}}, {i32s({3}, {1, 2, 2}), i64s({3}, {3, 0, 5})});
  expect_failure(Op::kTopK, {x}, {{"k", int64_t{7}}}, Code::kShape);
  EXPECT_EQ(run(Op::kTopK, {x}, {{"k", int64_t{7}}}, {}, true).status().code(), Code::kShape);
}

TEST(arg_max, ties_nan_and_last) {
  expect_op(Op::kArgMax, {f32s({4}, {1, kNan, 3, kNan})}, {}, i64s({1}, {1}));
  expect_op(Op::kArgMin, {f32s({3}, {1, kNan, -3})}, {}, i64s({1}, {1}));
  Tensor x = i32s({2, 3}, {4, 9, 9, 7, 7, 1});
  NamedAttrs rows{{"axis", int64_t{-1}}, {"keep_dims", int64_t{0}}}, last = rows;
  last.emplace_back("last", int64_t{1});
  expect_op(Op::kArgMax, {x}, rows, i64s({2}, {1, 0}));
  expect_op(Op::kArgMax, {x}, last, i64s({2}, {2, 1}));
  expect_op(Op::kArgMin, {tensor(DType::kI8, {2}, {127, -128})}, {}, i64s({1}, {1}));
  expect_op(Op::kArgMin, {tensor(DType::kU8, {2}, {1, 0})}, {}, i64s({1}, {1}));
  expect_op(Op::kArgMin, {bools({3}, {1, 0, 0})}, {}, i64s({1}, {1}));
  expect_op(Op::kHardmax, {f32s({2, 2}, {1, 3, 2, 2})}, {}, f32s({2, 2}, {0, 1, 1, 0}));
  expect_failure(Op::kArgMax, {f32s({0}, {})}, {}, Code::kShape);
}

}  // namespace rlx::test
