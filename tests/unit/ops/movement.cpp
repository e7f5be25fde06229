// SPDX-License-Identifier: Apache-2.0
// Composites of data movement: shapes over symbols, edges, and what their contents decide.
#include "op_test.h"

namespace rlx::test {

static NamedAttrs axes(std::vector<int64_t> list) {
  return {{"axes", std::move(list)}};
}
static const Tensor kX = i32s({2, 3}, {1, 2, 3, 4, 5, 6});

// One op on tensors whose sizes are numbers.
static void expect_fixed(Op op, const std::vector<Tensor>& in, NamedAttrs attrs, const std::vector<Tensor>& expected) {
  SCOPED_TRACE(op_table().info(op).name);
  auto got = run(op, in, std::move(attrs));
  ASSERT_TRUE(got.ok()) << got.status().message();
  ASSERT_EQ(got->size(), expected.size());
  for (size_t i = 0; i < expected.size(); i++) expect_equal((*got)[i], expected[i]);
}

TEST(movement, axes_of_size_one) {
  expect_fixed(Op::kSqueeze, {i32s({1, 2, 1}, {1, 2})}, {}, {i32s({2}, {1, 2})});
  expect_op(Op::kSqueeze, {i32s({1, 2, 1}, {1, 2})}, axes({-1}), i32s({1, 2}, {1, 2}));
  expect_failure(Op::kSqueeze, {kX}, axes({0}), Code::kShape);
  EXPECT_EQ(run(Op::kSqueeze, {kX}, axes({0}), {}, true).status().code(), Code::kShape);
  expect_op(Op::kUnsqueeze, {kX}, axes({0, -1}), i32s({1, 2, 3, 1}, {1, 2, 3, 4, 5, 6}));
  expect_failure(Op::kUnsqueeze, {kX}, axes({0, -4}), Code::kInvalidArgument, "twice");
  expect_op(Op::kFlatten, {i32s({2, 1, 3}, {1, 2, 3, 4, 5, 6})}, {{"axis", int64_t{2}}}, kX);
  expect_op(Op::kFlatten, {i32s({}, {7})}, {{"axis", int64_t{0}}}, i32s({1, 1}, {7}));
  expect_failure(Op::kFlatten, {kX}, {{"axis", int64_t{3}}}, Code::kRange, "outside 0..2");
}

TEST(movement, tile_and_repeat) {
  expect_op(Op::kTile, {kX}, {{"repeats", std::vector<int64_t>{1, 2}}},
            i32s({2, 6}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
  expect_op(Op::kTile, {i32s({2}, {1, 2})}, {{"repeats", std::vector<int64_t>{0}}}, i32s({0}, {}));
  expect_op(Op::kTile, {i32s({1, 1, 1, 1, 1, 1, 1, 2}, {1, 2})},
            {{"repeats", std::vector<int64_t>{2, 1, 1, 1, 1, 1, 1, 1}}}, i32s({2, 1, 1, 1, 1, 1, 1, 2}, {1, 2, 1, 2}));
  expect_failure(Op::kTile, {kX}, {{"repeats", std::vector<int64_t>{1}}}, Code::kOption, "one entry per axis");
  expect_op(Op::kRepeat, {kX}, {{"axis", int64_t{1}}, {"repeats", int64_t{2}}},
            i32s({2, 6}, {1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6}));
  expect_op(Op::kRepeat, {kX}, {{"axis", int64_t{0}}, {"repeats", int64_t{2}}},
            i32s({4, 3}, {1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
}

TEST(movement, split_and_stack) {
  Tensor x = i32s({5}, {1, 2, 3, 4, 5});
  expect_op(Op::kSplit, {x}, {{"sizes", std::vector<int64_t>{2, 0, 3}}},
            {i32s({2}, {1, 2}), i32s({0}, {}), i32s({3}, {3, 4, 5})});
  expect_op(Op::kSplit, {x}, {{"parts", int64_t{2}}}, {i32s({3}, {1, 2, 3}), i32s({2}, {4, 5})});
  expect_op(Op::kSplit, {x}, {{"parts", int64_t{4}}},
            {i32s({2}, {1, 2}), i32s({2}, {3, 4}), i32s({1}, {5}), i32s({0}, {})});
  expect_failure(Op::kSplit, {x}, {{"sizes", std::vector<int64_t>{2, 2}}}, Code::kShape);
  expect_failure(Op::kSplit, {x}, {}, Code::kOption, "either");
  expect_failure(Op::kSplit, {x}, {{"sizes", std::vector<int64_t>{6, -1}}}, Code::kOption);
  expect_op(Op::kStack, {i32s({2}, {1, 2}), i32s({2}, {3, 4})}, {{"axis", int64_t{-1}}}, i32s({2, 2}, {1, 3, 2, 4}));
}

TEST(movement, splitting_a_symbol_gives_sizes_without_a_trace_of_clamps) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {Dim::symbol("n") * 3, 4}));
  Outputs parts = b.ops(Op::kSplit, {x}, {{"parts", int64_t{3}}});
  ASSERT_EQ(parts.size(), 3u) << b.status().message();
  for (Expr part : parts) EXPECT_EQ(text_of(part.type()), "f32[n,4]");
  Expr y = b.wrap(*graph.add_input("y", DType::kF32, {Dim::symbol("a")}));
  Outputs sized = b.ops(Op::kSplit, {y}, {{"sizes", std::vector<int64_t>{2, 6}}});
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_EQ(text_of(sized[1].type()), "f32[6]");
  EXPECT_EQ(text_of(b.ops(Op::kTopK, {y}, {{"k", int64_t{3}}})[0].type()), "f32[3]");
}

// 200 pieces took 50 seconds where each began at the sum of the sizes before it.
TEST(movement, pieces_of_a_symbol_add_up_to_it_however_many_there_are) {
  for (int64_t parts : {3, 1000}) {
    Graph graph;
    Dim n = Dim::symbol("n");
    Value x = *graph.add_input("x", DType::kF32, {n});
    auto split = graph.add(Op::kSplit, std::array{x}, {{"parts", parts}});
    ASSERT_TRUE(split.ok()) << split.status().message();
    std::vector<Value> pieces;
    for (uint32_t i = 0; i < static_cast<uint32_t>(parts); i++) pieces.push_back({split->node, i});
    auto whole = graph.add(Op::kConcat, pieces, {{"axis", int64_t{0}}});
    ASSERT_TRUE(whole.ok()) << whole.status().message();
    EXPECT_EQ(text_of(graph.type(*whole)), "f32[n]");
    EXPECT_TRUE(graph.guards().empty());
    for (Value piece : pieces) EXPECT_LE(graph.type(piece).dims[0].parts(), 16);
  }
}

// More than the dtypes that a kernel is told of.
TEST(movement, a_hundred_pieces_are_joined) {
  std::vector<Tensor> pieces;
  std::vector<double> all;
  for (double i = 0; i < 100; i++) pieces.push_back(i32s({1}, {i})), all.push_back(i);
  expect_op(Op::kConcat, pieces, {{"axis", int64_t{0}}}, i32s({100}, all));
}

TEST(movement, a_size_of_a_piece_that_may_be_negative_gets_a_guard) {
  Graph graph;
  Builder b(graph);
  Dim n = Dim::symbol("n");
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {n * 2 + 1}));
  b.ops(Op::kSplit, {x}, {{"sizes", std::vector<Dim>{n + 2, n - 1}}});
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_TRUE(graph.implies(Guard::kLessEqual, 1, n));
}

TEST(movement, flip_roll_and_reverse) {
  expect_op(Op::kFlip, {kX}, axes({0, 1}), i32s({2, 3}, {6, 5, 4, 3, 2, 1}));
  auto roll = [](int64_t shift) { return NamedAttrs{{"axis", int64_t{1}}, {"shift", shift}}; };
  expect_op(Op::kRoll, {kX}, roll(1), i32s({2, 3}, {3, 1, 2, 6, 4, 5}));
  expect_op(Op::kRoll, {kX}, roll(-1), i32s({2, 3}, {2, 3, 1, 5, 6, 4}));
  expect_op(Op::kRoll, {kX}, roll(3), kX);
  expect_op(Op::kRoll, {kX}, roll(0), kX);
  for (int64_t shift : {-7, 5}) expect_op(Op::kRoll, {kX}, roll(shift), i32s({2, 3}, {2, 3, 1, 5, 6, 4}));
  for (int64_t shift : {INT64_MIN, INT64_MAX}) {  // both are 1 modulo 3
    expect_op(Op::kRoll, {kX}, roll(shift), i32s({2, 3}, {3, 1, 2, 6, 4, 5}));
    expect_op(Op::kRoll, {i32s({2, 0}, {})}, roll(shift), i32s({2, 0}, {}));
  }
  expect_op(Op::kReverseSequence, {i32s({3, 2}, {1, 2, 3, 4, 5, 6}), i64s({2}, {2, 3})}, {},
            i32s({3, 2}, {3, 6, 1, 4, 5, 2}));
}

TEST(movement, blocks_of_pixels_go_both_ways) {
  Tensor x = f32s({1, 4, 1, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  Tensor dcr = f32s({1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7});
  expect_op(Op::kDepthToSpace, {x}, {{"block", int64_t{2}}}, dcr);
  expect_op(Op::kSpaceToDepth, {dcr}, {{"block", int64_t{2}}}, x);
  expect_op(Op::kDepthToSpace, {f32s({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7})}, {{"block", int64_t{2}}, {"mode", "crd"}},
            f32s({1, 2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7}));
  expect_failure(Op::kDepthToSpace, {f32s({1, 3, 1, 1}, {1, 2, 3})}, {{"block", int64_t{2}}}, Code::kShape);
  expect_failure(Op::kDepthToSpace, {kX}, {{"block", int64_t{2}}}, Code::kShape, "rank 4");
}

TEST(movement, center_crop_and_pad) {
  auto shape = [](std::vector<int64_t> sizes) { return NamedAttrs{{"shape", std::move(sizes)}}; };
  Tensor x = i32s({5}, {1, 2, 3, 4, 5});
  expect_op(Op::kCenterCropPad, {x}, shape({2}), i32s({2}, {2, 3}));
  expect_op(Op::kCenterCropPad, {x}, shape({8}), i32s({8}, {0, 1, 2, 3, 4, 5, 0, 0}));
  expect_op(Op::kCenterCropPad, {kX}, shape({3, 1}), i32s({3, 1}, {2, 5, 0}));
}

TEST(fill, positions_and_constants) {
  auto shape = std::vector<int64_t>{2, 2};
  expect_fixed(Op::kFull, {}, {{"shape", shape}, {"value", 3.0}, {"dtype", "i8"}},
               {tensor(DType::kI8, {2, 2}, {3, 3, 3, 3})});
  expect_failure(Op::kFull, {}, {{"shape", shape}, {"value", -1.0}, {"dtype", "u8"}}, Code::kOption,
                 "-1 is not a value of u8");
  expect_fixed(Op::kEye, {}, {{"n", int64_t{2}}, {"m", int64_t{3}}, {"k", int64_t{1}}, {"dtype", "f32"}},
               {f32s({2, 3}, {0, 1, 0, 0, 0, 1})});
  expect_fixed(Op::kRange, {}, {{"start", 5.0}, {"step", -2.0}, {"count", int64_t{3}}, {"dtype", "i32"}},
               {i32s({3}, {5, 3, 1})});
  expect_fixed(Op::kRange, {}, {{"step", 0.1}, {"count", int64_t{4}}, {"dtype", "f32"}},
               {f32s({4}, {0, 0.1f, 0.2f, static_cast<float>(3 * 0.1)})});
  Tensor square = i32s({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  expect_op(Op::kTrilu, {square}, {}, i32s({3, 3}, {1, 2, 3, 0, 5, 6, 0, 0, 9}));
  expect_op(Op::kTrilu, {square}, {{"upper", int64_t{0}}, {"k", int64_t{-1}}},
            i32s({3, 3}, {0, 0, 0, 4, 0, 0, 7, 8, 0}));
  expect_op(Op::kOneHot, {i64s({3}, {1, -1, 5}), f32s({}, {2}), f32s({}, {-1})},
            {{"depth", int64_t{3}}, {"axis", int64_t{0}}}, f32s({3, 3}, {-1, -1, -1, 2, -1, -1, -1, 2, -1}));
}

TEST(dynamic, windows_that_move) {
  Tensor x = i32s({4}, {1, 2, 3, 4});
  expect_op(Op::kDynamicSlice, {x, i64s({}, {-3})}, {{"axis", int64_t{0}}, {"size", int64_t{2}}}, i32s({2}, {2, 3}));
  expect_failure(Op::kDynamicSlice, {x, i64s({}, {3})}, {{"axis", int64_t{0}}, {"size", int64_t{2}}}, Code::kRange);
  expect_failure(Op::kDynamicSlice, {x, i64s({}, {0})}, {{"axis", int64_t{0}}, {"size", int64_t{5}}}, Code::kShape);
  expect_op(Op::kDynamicUpdateSlice, {x, i32s({2}, {8, 9}), i32s({}, {1})}, {{"axis", int64_t{0}}},
            i32s({4}, {1, 8, 9, 4}));
}

// Of 4 elements, -5 is one before the first: the window does not begin at the last one instead.
TEST(dynamic, a_window_that_begins_before_its_axis_fails) {
  Tensor x = i32s({4}, {1, 2, 3, 4}), rows = i32s({2}, {8, 9});
  NamedAttrs along{{"axis", int64_t{0}}}, size{{"axis", int64_t{0}}, {"size", int64_t{2}}};
  for (double start : {-5.0, -6.0, -7.0}) {
    expect_failure(Op::kDynamicSlice, {x, i64s({}, {start})}, size, Code::kRange);
    expect_failure(Op::kDynamicUpdateSlice, {x, rows, i64s({}, {start})}, along, Code::kRange);
    expect_failure(Op::kKvAppend, {x, rows, i64s({}, {start})}, along, Code::kRange);
  }
  expect_op(Op::kKvAppend, {x, rows, i64s({}, {-2})}, along, i32s({4}, {1, 2, 8, 9}));
  expect_failure(Op::kKvAppend, {x, rows, i64s({}, {-1})}, along, Code::kRange);
}

TEST(dynamic, an_update_starts_at_one_number) {
  expect_failure(Op::kDynamicUpdateSlice, {i32s({2}, {1, 2}), i32s({1}, {8}), i32s({1}, {0})}, {{"axis", int64_t{0}}},
                 Code::kShape, "start must be a scalar, not of rank 1");
}

TEST(dynamic, caches_grow_at_one_place_or_one_per_row) {
  Tensor cache = i32s({2, 3, 1}, {0, 0, 0, 0, 0, 0}), rows = i32s({2, 2, 1}, {1, 2, 3, 4});
  NamedAttrs at{{"axis", int64_t{1}}}, wrapped{{"axis", int64_t{-2}}, {"wrap", int64_t{1}}};
  expect_op(Op::kKvAppend, {cache, rows, i64s({}, {1})}, at, i32s({2, 3, 1}, {0, 1, 2, 0, 3, 4}));
  expect_op(Op::kKvAppend, {cache, rows, i64s({}, {5})}, wrapped, i32s({2, 3, 1}, {2, 0, 1, 4, 0, 3}));
  expect_op(Op::kKvAppend, {cache, rows, i64s({2}, {0, 1})}, at, i32s({2, 3, 1}, {1, 2, 0, 0, 3, 4}));
  Tensor heads = i32s({1, 2, 2, 1}, {0, 0, 0, 0}), step = i32s({1, 2, 1, 1}, {7, 8});
  expect_op(Op::kKvAppend, {heads, step, i32s({1}, {1})}, {{"axis", int64_t{2}}}, i32s({1, 2, 2, 1}, {0, 7, 0, 8}));
  expect_failure(Op::kKvAppend, {cache, rows, i64s({}, {2})}, at, Code::kRange);
}

TEST(dynamic, nonzero_in_both_forms) {
  Tensor x = f32s({2, 2}, {0, 3, 5, 0});
  expect_op(Op::kNonzero, {x}, {}, {i64s({2, 2}, {0, 1, 1, 0}), i64s({}, {2})});
  expect_op(Op::kNonzero, {x}, {{"max_count", int64_t{3}}, {"bounded", int64_t{1}}},
            {i64s({3, 2}, {0, 1, 1, 0, -1, -1}), i64s({}, {2})});
  expect_op(Op::kNonzero, {x}, {{"max_count", int64_t{1}}}, {i64s({1, 2}, {0, 1}), i64s({}, {1})});
  expect_op(Op::kNonzero, {bools({}, {1})}, {}, {i64s({1, 0}, {}), i64s({}, {1})});
  expect_op(Op::kNonzero, {f32s({0, 2}, {})}, {}, {i64s({0, 2}, {}), i64s({}, {0})});
}

TEST(dynamic, compress_along_an_axis_or_flat) {
  Tensor cond = bools({3}, {1, 0, 1});
  expect_op(Op::kCompress, {kX, cond}, {{"axis", int64_t{1}}}, {i32s({2, 2}, {1, 3, 4, 6}), i64s({}, {2})});
  expect_op(Op::kCompress, {kX, cond}, {{"axis", int64_t{-1}}, {"bounded", int64_t{1}}},
            {i32s({2, 3}, {1, 3, 0, 4, 6, 0}), i64s({}, {2})});
  expect_op(Op::kCompress, {kX, bools({6}, {0, 0, 0, 1, 0, 1})}, {}, {i32s({2}, {4, 6}), i64s({}, {2})});
}

TEST(dynamic, unique_golden_values) {
  Tensor x = i32s({6}, {2, 1, 1, 3, 4, 3});
  expect_op(Op::kUnique, {x}, {},
            {i32s({4}, {1, 2, 3, 4}), i64s({4}, {1, 0, 3, 4}), i64s({6}, {1, 0, 0, 2, 3, 2}), i64s({4}, {2, 1, 2, 1}),
             i64s({}, {4})});
  expect_op(Op::kUnique, {x}, {{"sorted", int64_t{0}}, {"bounded", int64_t{1}}},
            {i32s({6}, {2, 1, 3, 4, 0, 0}), i64s({6}, {0, 1, 3, 4, -1, -1}), i64s({6}, {0, 1, 1, 2, 3, 2}),
             i64s({6}, {1, 2, 2, 1, 0, 0}), i64s({}, {4})});
  expect_op(
      Op::kUnique, {f32s({3}, {kNan, 1, kNan})}, {},
      {f32s({3}, {1, kNan, kNan}), i64s({3}, {1, 0, 2}), i64s({3}, {1, 0, 2}), i64s({3}, {1, 1, 1}), i64s({}, {3})});
  expect_op(Op::kUnique, {i32s({0}, {})}, {},
            {i32s({0}, {}), i64s({0}, {}), i64s({0}, {}), i64s({0}, {}), i64s({}, {0})});
}

TEST(dynamic, range_counts_what_python_counts) {
  auto range = [](double start, double limit, double step) {
    auto got = run(Op::kDynamicRange, {f64s({}, {start}), f64s({}, {limit}), f64s({}, {step})});
    EXPECT_TRUE(got.ok()) << got.status().message();
    return numbers((*got)[0]);
  };
  EXPECT_EQ(range(0, 3, 1), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(range(5, 0, -2), (std::vector<double>{5, 3, 1}));
  EXPECT_EQ(range(0, 1, 0.4), (std::vector<double>{0, 0.4, 0.8}));
  EXPECT_TRUE(range(3, 0, 1).empty());
  EXPECT_TRUE(range(0, 3, 0).empty());
  auto bytes = [](double x) { return tensor(DType::kU8, {}, {x}); };
  expect_op(Op::kDynamicRange, {bytes(7), bytes(3), bytes(1)}, {}, tensor(DType::kU8, {0}, {}));
  expect_op(Op::kDynamicRange, {bytes(3), bytes(7), bytes(3)}, {}, tensor(DType::kU8, {2}, {3, 6}));
}

TEST(dynamic, a_composite_keeps_its_symbol_when_it_is_built_again) {
  Graph graph;
  Value x = *graph.add_input("x", DType::kF32, {4});
  Value a = *graph.add(Op::kNonzero, std::array{x}), b = *graph.add(Op::kNonzero, std::array{x});
  EXPECT_NE(text_of(graph.type(a)), text_of(graph.type(b)));
  Graph again;
  Value other = *again.add_input("x", DType::kF32, {4});
  Value rebuilt = *again.add(graph.info(Op::kNonzero), std::array{other}, graph.node(b).attrs);
  EXPECT_EQ(text_of(again.type(rebuilt)), text_of(graph.type(b)));
}

}  // namespace rlx::test
