// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters: layouts, the bounds rule, reductions, and sizes that contents decide.
#include "ops/index.h"

#include "ir/broken_guard.h"
#include "op_test.h"

namespace rlx::test {

static const Tensor kX = f32s({3, 2}, {1, 2, 3, 4, 5, 6});
static constexpr EvalOptions kClamp{.bounds = Bounds::kClamp}, kDrop{.bounds = Bounds::kDrop};

TEST(gather, golden_values) {
  expect_op(Op::kGather, {kX, i64s({2}, {2, -3})}, {{"axis", int64_t{0}}}, f32s({2, 2}, {5, 6, 1, 2}));
  expect_op(Op::kGather, {kX, i32s({1, 2}, {1, 0})}, {{"axis", int64_t{1}}}, f32s({3, 1, 2}, {2, 1, 4, 3, 6, 5}));
  auto tuples = run(Op::kGatherNd, {kX, i64s({2, 2}, {2, 1, 0, 0})});
  ASSERT_TRUE(tuples.ok()) << tuples.status().message();
  expect_equal((*tuples)[0], f32s({2}, {6, 1}));
}

TEST(gather, scalar_indices_remove_the_axis_and_no_indices_give_nothing) {
  expect_op(Op::kGather, {kX, i64s({}, {-1})}, {{"axis", int64_t{0}}}, f32s({2}, {5, 6}));
  expect_op(Op::kGather, {kX, i64s({0}, {})}, {{"axis", int64_t{-1}}}, f32s({3, 0}, {}));
}

TEST(gather, elements_take_one_index_each) {
  expect_op(Op::kGatherElements, {kX, i64s({2, 2}, {0, -1, 1, 0})}, {{"axis", int64_t{0}}}, f32s({2, 2}, {1, 6, 3, 2}));
  expect_op(Op::kGatherElements, {kX, i32s({3, 1}, {1, 0, -1})}, {{"axis", int64_t{1}}}, f32s({3, 1}, {2, 3, 6}));
  expect_failure(Op::kGatherElements, {kX, i64s({4, 2}, {0, 0, 0, 0, 0, 0, 0, 0})}, {{"axis", int64_t{1}}},
                 Code::kShape, "axis 0 of idx");
  expect_failure(Op::kGatherElements, {kX, i64s({2, 3}, {0, 0, 0, 0, 0, 0})}, {{"axis", int64_t{0}}}, Code::kShape,
                 "axis 1 of idx");
}

// With batch dims the batches are walked together; with no indices a slice is the whole rest.
TEST(gather, nd_with_batch_dims_and_with_empty_tuples) {
  auto at = [](const Tensor& x, const Tensor& idx, int64_t batch_dims, bool symbolic) {
    Graph graph;
    std::vector<Dim> dims(x.dims().begin(), x.dims().end()), index(idx.dims().begin(), idx.dims().end());
    if (symbolic) dims[0] = Dim::symbol("b");
    Value a = *graph.add_input("x", x.dtype(), dims), b = *graph.add_input("i", idx.dtype(), index);
    auto y = graph.add(Op::kGatherNd, std::array{a, b}, {{"batch_dims", batch_dims}});
    EXPECT_TRUE(y.ok() && graph.add_output("y", *y).ok());
    return (*interpret(graph, std::array{x, idx}))[0];
  };
  for (bool symbolic : {false, true}) {
    expect_equal(at(kX, i64s({3, 1, 1}, {1, 0, -1}), 1, symbolic), f32s({3, 1}, {2, 3, 6}));
    expect_equal(at(kX, i64s({2, 0}, {}), 0, symbolic), f32s({2, 3, 2}, {1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}));
  }
}

TEST(gather, an_index_outside_follows_the_option) {
  Tensor bad = i64s({1}, {3});
  expect_failure(Op::kGather, {kX, bad}, {}, Code::kRange, "gather: index 3 at position 0 is outside a size of 3");
  expect_op(Op::kGather, {kX, bad}, {}, f32s({1, 2}, {5, 6}), kClamp);
  expect_op(Op::kGather, {kX, bad}, {}, f32s({1, 2}, {0, 0}), kDrop);
  expect_op(Op::kGather, {kX, i64s({1}, {-4})}, {}, f32s({1, 2}, {1, 2}), kClamp);
  Tensor pairs = i64s({2, 2}, {0, 2, 1, 1});
  expect_op(Op::kGatherElements, {kX, pairs}, {{"axis", int64_t{1}}}, f32s({2, 2}, {1, 0, 4, 4}), kDrop);
  // Of an empty axis every index is invalid, and a clamp has nothing to clamp to.
  expect_op(Op::kGather, {f32s({0, 2}, {}), i64s({1}, {0})}, {}, f32s({1, 2}, {0, 0}), kClamp);
}

TEST(gather, an_index_outside_is_told_what_is_inside) {
  auto got = run(Op::kGather, {kX, i64s({1}, {3})});
  EXPECT_EQ(*got.status().detail("got"), "3");
  EXPECT_EQ(*got.status().detail("expected"), "-3..2");
}

TEST(gather, an_index_outside_fails_where_nothing_is_picked_too) {
  expect_failure(Op::kGather, {f32s({3, 0}, {}), i64s({1}, {3})}, {}, Code::kRange,
                 "gather: index 3 at position 0 is outside a size of 3");
  expect_failure(Op::kGather, {f32s({0, 3}, {}), i64s({1}, {3})}, {{"axis", int64_t{1}}}, Code::kRange,
                 "gather: index 3 at position 0 is outside a size of 3");
  expect_failure(Op::kGatherNd, {f32s({3, 0}, {}), i64s({1, 1}, {-4})}, {}, Code::kRange,
                 "gather_nd: index -4 at position 0 is outside a size of 3");
}

TEST(gather, nd_takes_as_many_indices_as_axes_and_no_more) {
  EXPECT_TRUE(run(Op::kGatherNd, {kX, i64s({1, 2}, {2, 1})}).ok());
  expect_failure(Op::kGatherNd, {kX, i64s({1, 3}, {0, 0, 0})}, {}, Code::kShape,
                 "gather_nd: 0 batch dims and 3 indices do not fit x of rank 2 and idx of rank 2");
}

TEST(gather, nd_drops_a_tuple_if_any_of_its_indices_is_outside) {
  Graph graph;
  Tensor idx = i64s({2, 2}, {2, 5, -1, -2});
  Value a = *graph.add_input("x", kX.dtype(), {3, 2}), b = *graph.add_input("i", DType::kI64, {2, 2});
  Value y = *graph.add(Op::kGatherNd, std::array{a, b});
  ASSERT_TRUE(graph.add_output("y", y).ok());
  expect_equal((*interpret(graph, std::array{kX, idx}, {}, kDrop))[0], f32s({2}, {0, 5}));
  EXPECT_EQ(interpret(graph, std::array{kX, idx}).status().code(), Code::kRange);
}

TEST(scatter, golden_values_and_every_reduction) {
  Tensor idx = i64s({3}, {1, 1, -1}), u = f32s({3}, {10, 20, 30});
  auto by = [](const char* reduction) { return NamedAttrs{{"reduction", reduction}}; };
  expect_op(Op::kScatter, {f32s({3}, {0, 0, 0}), idx, u}, by("add"), f32s({3}, {0, 30, 30}));
  expect_op(Op::kScatter, {f32s({3}, {15, 15, 15}), idx, u}, by("max"), f32s({3}, {15, 20, 30}));
  expect_op(Op::kScatter, {f32s({3}, {15, 15, 15}), idx, u}, by("min"), f32s({3}, {15, 10, 15}));
  expect_op(Op::kScatter, {f32s({3}, {1, 2, 3}), idx, u}, by("mul"), f32s({3}, {1, 400, 90}));
  expect_op(Op::kScatter, {f32s({3}, {1, 2, 3}), idx, u}, by("none"), f32s({3}, {1, 20, 30}));
  expect_op(Op::kScatter, {bools({2}, {0, 0}), i64s({1}, {1}), bools({1}, {1})}, by("max"), bools({2}, {0, 1}));
}

TEST(scatter, a_half_sum_is_rounded_once) {
  // Each +1 alone would be lost beside 2048 in f16.
  Tensor idx = i64s({4}, {0, 0, 0, 0}), ones = tensor(DType::kF16, {4}, {1, 1, 1, 1});
  expect_op(Op::kScatter, {tensor(DType::kF16, {1}, {2048}), idx, ones}, {{"reduction", "add"}},
            tensor(DType::kF16, {1}, {2052}));
}

TEST(scatter, rows_elements_and_tuples) {
  expect_op(Op::kScatter, {kX, i64s({1}, {1}), f32s({3, 1}, {7, 8, 9})}, {{"axis", int64_t{1}}},
            f32s({3, 2}, {1, 7, 3, 8, 5, 9}));
  expect_op(Op::kScatterElements, {kX, i64s({1, 2}, {2, 0}), f32s({1, 2}, {7, 8})}, {{"axis", int64_t{0}}},
            f32s({3, 2}, {1, 8, 3, 4, 7, 6}));
  Graph graph;
  Value x = *graph.add_input("x", DType::kF32, {Dim::symbol("b"), 2}),
        idx = *graph.add_input("i", DType::kI64, {3, 2, 1}), u = *graph.add_input("u", DType::kF32, {3, 2});
  Value y = *graph.add(Op::kScatterNd, std::array{x, idx, u}, {{"batch_dims", int64_t{1}}, {"reduction", "add"}});
  ASSERT_TRUE(graph.add_output("y", y).ok());
  auto got = interpret(graph, std::array{kX, i64s({3, 2, 1}, {0, 0, 1, 0, -1, -1}), f32s({3, 2}, {1, 1, 1, 1, 1, 1})});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_equal((*got)[0], f32s({3, 2}, {3, 2, 4, 5, 5, 8}));
}

TEST(scatter, an_update_outside_follows_the_option) {
  std::vector<Tensor> in{f32s({2}, {1, 2}), i64s({2}, {5, 0}), f32s({2}, {10, 20})};
  expect_failure(Op::kScatter, in, {}, Code::kRange, "index 5 at position 0");
  expect_op(Op::kScatter, in, {}, f32s({2}, {20, 2}), kDrop);
  expect_op(Op::kScatter, in, {}, f32s({2}, {20, 10}), kClamp);
}

TEST(scatter, refuses_shapes_and_reductions_that_do_not_fit) {
  Tensor idx = i64s({1}, {0});
  expect_failure(Op::kScatter, {kX, idx, f32s({1, 3}, {1, 2, 3})}, {}, Code::kShape, "axis 1 of u");
  expect_failure(Op::kScatter, {kX, idx, f32s({2}, {1, 2})}, {}, Code::kShape, "u has rank 1, the indices pick 2 axes");
  expect_failure(Op::kScatter, {bools({1}, {0}), idx, bools({1}, {1})}, {{"reduction", "add"}}, Code::kDtype, "bool");
}

TEST(scatter, max_unpool_needs_the_whole_shape) {
  Tensor x = f32s({2}, {5, 7}), at = i32s({2}, {3, 0});
  expect_op(Op::kMaxUnpool, {x, at}, {{"shape", std::vector<int64_t>{2, 2}}}, f32s({2, 2}, {7, 0, 0, 5}));
  expect_failure(Op::kMaxUnpool, {x, at}, {{"shape", std::vector<int64_t>{-1, 2}}}, Code::kOption);
}

TEST(dynamic_iota, a_count_becomes_a_size_that_later_nodes_use) {
  Graph graph;
  Builder b(graph);
  Expr count = b.wrap(*graph.add_input("count", DType::kI64, {}));
  Expr positions = b.op(Op::kDynamicIota, {count}, {{"max", int64_t{5}}});
  Expr size = b.op(Op::kDimSize, {positions}, {{"axis", int64_t{0}}});
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_EQ(graph.range(positions.dim(0)).hi, 5);
  ASSERT_TRUE(graph.add_output("y", (positions + positions).value()).ok() && graph.add_output("n", size.value()).ok());
  auto three = interpret(graph, std::array{i64s({}, {3})});
  ASSERT_TRUE(three.ok()) << three.status().message();
  expect_equal((*three)[0], i64s({3}, {0, 2, 4}));
  expect_equal((*three)[1], i64s({}, {3}));
  expect_equal((*interpret(graph, std::array{i64s({}, {-2})}))[0], i64s({0}, {}));
  EXPECT_EQ(interpret(graph, std::array{i64s({}, {6})}).status().code(), Code::kRange);
}

TEST(dynamic_iota, counts_are_limited_with_and_without_a_maximum) {
  Graph graph;
  Value count = *graph.add_input("count", DType::kI64, {});
  Value free = *graph.add(Op::kDynamicIota, std::array{count});
  Value limited = *graph.add(Op::kDynamicIota, std::array{count}, {{"max", int64_t{5}}});
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  auto none = [](std::string_view) { return std::optional<int64_t>(); };
  auto size = [&](Value of, int64_t number) { return dynamic_size(graph.node(of).attrs, number, none); };
  EXPECT_EQ(*size(free, kMost), kMost);
  EXPECT_EQ(size(free, kMost + 1).status().message(), "the count 2147483648 is above 2147483647");
  EXPECT_EQ(*size(limited, 5), 5);
  EXPECT_EQ(size(limited, 6).status().message(), "the count 6 is above 5");
}

TEST(dynamic_iota, two_of_them_have_two_sizes_and_a_rebuilt_node_keeps_its_own) {
  Graph graph;
  Value count = *graph.add_input("count", DType::kI32, {});
  Value a = *graph.add(Op::kDynamicIota, std::array{count}), b = *graph.add(Op::kDynamicIota, std::array{count});
  EXPECT_NE(text_of(graph.type(a)), text_of(graph.type(b)));
  Graph again;
  Value other = *again.add_input("count", DType::kI32, {});
  Value rebuilt = *again.add(graph.info(Op::kDynamicIota), std::array{other}, graph.node(b).attrs);
  EXPECT_EQ(text_of(again.type(rebuilt)), text_of(graph.type(b)));
}

TEST(guard, a_broken_one_names_the_op_the_size_and_both_numbers) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF64, {Dim::symbol("n")}));
  Expr y = b.wrap(*graph.add_input("y", DType::kF64, {Dim::symbol("m")}));
  ASSERT_TRUE(graph.add_output("sum", (x + y).value()).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, Dim::symbol("n") + 1, 3, "slice"}).ok());
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  Status unequal = interpret(graph, std::array{f64s({2}, {1, 2}), f64s({1}, {1})}).status();
  EXPECT_EQ(unequal.message(), "add: n = m does not hold: 2 and 1");
  EXPECT_EQ(*unequal.detail("op"), "add");
  Status above = interpret(graph, std::array{f64s({3}, {1, 2, 3}), f64s({3}, {1, 2, 3})}).status();
  EXPECT_EQ(above.message(), "'n' may be at most 2: slice needs n + 1 <= 3; got 3");
  EXPECT_EQ(*above.detail("value"), "n");
}

// What is said of a size is true of all sizes.
TEST(guard, a_message_says_which_sizes_are_legal_if_that_is_known) {
  Dim n = Dim::symbol("n");
  const std::pair<Guard, const char*> cases[] = {
      {{Guard::kLessEqual, 2 * n, 9, "slice"}, "'n' may be at most 4: slice needs 2*n <= 9; got 6"},
      {{Guard::kEqual, 2 * n, 8, "slice"}, "'n' must be 4: slice needs 2*n = 8; got 6"},
      {{Guard::kEqual, 8 - n, n, "slice"}, "'n' must be 4: slice needs -n + 8 = n; got 6"},
      {{Guard::kEqual, 2 * n, 9, "slice"}, "slice: 2*n = 9 does not hold: 12 and 9"},
      {{Guard::kEqual, n, floor_div(n, 2) * 2 + 1, "slice"}, "slice: n = 2*(n/2) + 1 does not hold: 6 and 7"},
      {{Guard::kEqual, 0, n, "slice"}, "'n' must be 0: slice needs 0 = n; got 6"},
      {{Guard::kEqual, n, 0, "slice"}, "'n' must be 0: slice needs n = 0; got 6"},
      {{Guard::kLessEqual, n, 0, "slice"}, "'n' may be at most 0: slice needs n <= 0; got 6"},
      {{Guard::kLessEqual, 9, n, "slice"}, "slice: 9 <= n does not hold: 9 and 6"},
      {{Guard::kLessEqual, n + 3, 1, "slice"}, "slice: n + 3 <= 1 does not hold: 9 and 1"},
      {{Guard::kLessEqual, n * n, 16, "slice"}, "slice: n*n <= 16 does not hold: 36 and 16"},
  };
  for (const auto& [guard, message] : cases)
    EXPECT_EQ(broken_guard(Graph(), guard, [](std::string_view) { return std::optional<int64_t>(6); }).message(),
              message);
}

TEST(guard, an_equality_that_a_run_breaks_is_an_error) {
  Graph graph;
  Value a = *graph.add_input("a", DType::kF32, {Dim::symbol("m")}),
        b = *graph.add_input("b", DType::kF32, {Dim::symbol("n")});
  Value y = *graph.add(Op::kAdd, std::array{a, b}, {}, "sum");
  ASSERT_TRUE(graph.add_output("y", y).ok());
  auto run = interpret(graph, std::array{f32s({2}, {1, 2}), f32s({3}, {1, 2, 3})});
  ASSERT_EQ(run.status().code(), Code::kShape);
  EXPECT_NE(run.status().message().find("add 'sum'"), std::string_view::npos) << run.status().message();
}

// A size that is no axis of an input is the length of a tensor that only carries it: it has no bytes.
TEST(sizes, a_large_one_takes_no_memory) {
  Graph graph;
  Builder b(graph);
  Dim n = Dim::symbol("n");
  ASSERT_TRUE(graph.add_input("x", DType::kF32, {n}).ok());
  ASSERT_TRUE(graph.add_output("y", b.size(n + Dim(int64_t{1} << 40), DType::kI64).value()).ok());
  for (EvalMode mode : {EvalMode::kTyped, EvalMode::kOracle}) {
    auto got = interpret(graph, std::array{f32s({2}, {1, 2})}, {}, {.mode = mode});
    ASSERT_TRUE(got.ok()) << got.status().message();
    expect_equal((*got)[0], i64s({}, {(int64_t{1} << 40) + 2}));
  }
}

}  // namespace rlx::test
