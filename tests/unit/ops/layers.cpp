// SPDX-License-Identifier: Apache-2.0
// Pools, fused convolution, quantisation, einsum: golden values, and what they refuse. The bulk
// of their values stands in samples/layers.golden.
#include "op_test.h"

namespace rlx::test {

using List = std::vector<int64_t>;
static constexpr double kDigits = 5e-9;

static NamedAttrs window(List kernel, List strides, bool ceil_mode, std::optional<bool> count_pads = {}) {
  NamedAttrs attrs{{"kernel", kernel},
                   {"strides", strides},
                   {"pad_lo", List{1}},
                   {"pad_hi", List{1}},
                   {"ceil_mode", int64_t{ceil_mode}}};
  if (count_pads) attrs.emplace_back("count_include_pad", int64_t{*count_pads});
  return attrs;
}

TEST(pool, golden_values_in_ceil_mode) {
  Tensor x = f64s({1, 1, 6}, {1, 3, 2, 5, 4, 6}), y = f64s({1, 1, 5}, {1, 3, 2, 5, 4});
  expect_op(Op::kAvgPool, {x}, window({3}, {2}, true, true), f64s({1, 1, 4}, {4.0 / 3, 10.0 / 3, 5, 3}), {}, kDigits);
  expect_op(Op::kAvgPool, {x}, window({3}, {2}, true, false), f64s({1, 1, 4}, {2, 10.0 / 3, 5, 6}), {}, kDigits);
  expect_op(Op::kMaxPool, {x}, window({3}, {2}, true), f64s({1, 1, 4}, {3, 5, 6, 6}));
  expect_op(Op::kAvgPool, {y}, window({2}, {3}, true, true), f64s({1, 1, 2}, {0.5, 3.5}));
  expect_op(Op::kAvgPool, {y}, window({2}, {3}, true, false), f64s({1, 1, 2}, {1, 3.5}));
}

// A kernel as large as x has one window only if no side is padded.
TEST(pool, of_all_elements_and_padding_on_one_side) {
  Tensor x = f64s({1, 1, 2}, {1, 3});
  for (auto [lo, hi] : {std::pair(0, 0), {1, 0}, {0, 1}}) {
    NamedAttrs attrs{{"kernel", List{2}}, {"pad_lo", List{lo}}, {"pad_hi", List{hi}}};
    Sizes dims{1, 1, 1 + lo + hi};
    expect_op(Op::kMaxPool, {x}, attrs,
              f64s(dims, lo   ? std::vector<double>{1, 3}
                         : hi ? std::vector<double>{3, 3}
                              : std::vector<double>{3}));
  }
}

TEST(pool, pads_that_cut_all_away_and_huge_kernels_are_refused) {
  Tensor x = f64s({1, 1, 2}, {1, 3});
  NamedAttrs cut{{"kernel", List{1}}, {"pad_lo", List{-3}}, {"count_include_pad", int64_t{1}}};
  expect_failure(Op::kAvgPool, {x}, cut, Code::kShape, "the size -1 is negative");
  expect_failure(Op::kMaxPool, {x}, {{"kernel", List{INT64_MAX}}, {"dilation", List{2}}, {"ceil_mode", int64_t{1}}},
                 Code::kOption, "window");
}

TEST(pool, nested_in_ceil_mode_have_short_sizes) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {1, 1, Dim::symbol("n")}));
  for (int i = 0; i < 5; i++)
    x = b.op(Op::kMaxPool, {x}, {{"kernel", List{3}}, {"strides", List{2}}, {"ceil_mode", int64_t{1}}});
  ASSERT_TRUE(x.valid());
  Dim size = x.dim(2);
  EXPECT_LT(size.text().size(), 100u) << size.text();
  for (int64_t n : {3, 4, 31, 64, 97, 224}) {
    int64_t want = n;
    for (int i = 0; i < 5; i++) want = want / 2;  // (want - 3 + 1) / 2 + 1
    EXPECT_EQ(*evaluate(size, [&](std::string_view) { return n; }), want) << n;
  }
}

TEST(pool, refuses_lists_that_do_not_fit) {
  Tensor x = f64s({1, 1, 2}, {1, 2});
  expect_failure(Op::kMaxPool, {x}, {{"kernel", List{1, 1}}}, Code::kShape, "x needs rank 4, for a kernel of 2 axes");
  expect_failure(Op::kAvgPool, {x}, {{"kernel", List{1}}, {"strides", List{1, 1}}}, Code::kOption, "'strides'");
  expect_failure(Op::kMaxPool, {x}, {{"kernel", List{0}}}, Code::kOption, "kernel");
}

TEST(conv_bias_act, of_bytes_sums_in_i32) {
  Tensor x = tensor(DType::kU8, {1, 1, 2}, {200, 100}), w = tensor(DType::kI8, {2, 1, 1}, {100, -100});
  expect_op(Op::kConvBiasAct, {x, w, i32s({2}, {1, 2})}, {{"act", "relu"}}, i32s({1, 2, 2}, {20001, 10001, 0, 0}));
  expect_failure(Op::kConvBiasAct, {x, w, i32s({1}, {1})}, {}, Code::kShape, "bias is [1], which is not [2]");
}

TEST(quantize, golden_values) {
  Tensor x = f32s({9}, {-3, -1.25, -.26, 0, .25, .75, 1.25, 3, 200}), scale = f32s({}, {0.5});
  expect_op(Op::kQuantizeLinear, {x, scale, tensor(DType::kI8, {}, {3})}, {},
            tensor(DType::kI8, {9}, {-3, 1, 2, 3, 3, 5, 5, 9, 127}));
  expect_op(Op::kQuantizeLinear, {x, scale, tensor(DType::kU8, {}, {128})}, {},
            tensor(DType::kU8, {9}, {122, 126, 127, 128, 128, 130, 130, 134, 255}));
  expect_op(Op::kDynamicQuantizeLinear, {f32s({5}, {-1, 0, .25, .75, 2})}, {},
            {tensor(DType::kU8, {5}, {0, 85, 106, 149, 255}), f32s({}, {0.0117647059}), tensor(DType::kU8, {}, {85})});
  Tensor packed = tensor(DType::kU8, {1}, {0xE4});
  expect_op(Op::kUnpackBits, {packed}, {{"bits", int64_t{4}}}, tensor(DType::kU8, {2}, {4, 14}));
  expect_op(Op::kUnpackBits, {packed}, {{"bits", int64_t{2}}, {"signed", int64_t{1}}},
            tensor(DType::kI8, {4}, {0, 1, -2, -1}));
}

// The product is clamped to the range of the output's dtype, all of it.
TEST(quantize, products_reach_both_ends_of_the_output) {
  Tensor x = tensor(DType::kI8, {3, 1}, {127, -128, 100}), w = tensor(DType::kI8, {1, 1}, {2});
  Tensor zero = tensor(DType::kI8, {}, {0}), scale = f32s({}, {1});
  expect_op(Op::kQMatmul, {x, w, zero, zero, Tensor(), scale, zero}, {{"out_dtype", DType::kI8}},
            tensor(DType::kI8, {3, 1}, {127, -128, 127}));
  expect_op(Op::kQMatmul, {x, w, zero, zero, Tensor(), scale, tensor(DType::kU8, {}, {0})}, {{"out_dtype", DType::kU8}},
            tensor(DType::kU8, {3, 1}, {254, 0, 200}));
}

TEST(quantize, refuses_what_it_cannot_mean) {
  Tensor x = f32s({2, 2}, {1, 2, 3, 4}), scale = f32s({}, {1});
  expect_failure(Op::kQuantizeLinear, {x, scale}, {}, Code::kOption, "'dtype' is needed");
  expect_failure(Op::kQuantizeLinear, {x, scale}, {{"dtype", "i32"}}, Code::kDtype, "i32");
  expect_failure(Op::kQuantizeLinear, {x, scale, tensor(DType::kU8, {}, {0})}, {{"dtype", "i8"}}, Code::kDtype,
                 "differ");
  expect_failure(Op::kQuantizeLinear, {x, f32s({3}, {1, 1, 1})}, {{"dtype", "i8"}}, Code::kShape, "scale is [3]");
  expect_failure(Op::kQuantizeLinear, {x, f64s({}, {1})}, {{"dtype", "i8"}}, Code::kDtype, "not f64");
  expect_failure(Op::kDequantizeLinear, {i32s({1}, {1}), f32s({}, {1}), i32s({1}, {1})}, {}, Code::kShape, "zp");
  expect_failure(Op::kUnpackBits, {tensor(DType::kU8, {1}, {1})}, {{"bits", int64_t{3}}}, Code::kOption, "1, 2 or 4");
}

TEST(einsum, refuses_equations_that_do_not_fit_and_sizes_that_differ) {
  Tensor a = f64s({2, 3}, {1, 2, 3, 4, 5, 6}), b = f64s({3}, {1, 2, 3});
  auto refused = [&](const char* equation, const char* part, Code code = Code::kOption) {
    expect_failure(Op::kEinsum, {a, b}, {{"equation", equation}}, code, part);
  };
  refused("ij", "1 term for 2 inputs");
  refused("ijk,k", "names 3 axes");
  refused("ij,j->ik", "the output's k is in no term");
  refused("ij,j->ii", "twice");
  refused("i1,j", "not a list of letters");
  refused("...j,j->j", "leaves out ...");
  refused("ij,i->j", "", Code::kShape);
  expect_op(Op::kEinsum, {a, b}, {{"equation", "ij, j -> i"}}, f64s({2}, {14, 32}));
  for (const Sizes& sizes : {Sizes{3, 1}, Sizes{1, 3}}) {
    Tensor oblong = f64s(sizes, {1, 2, 3});
    expect_failure(Op::kEinsum, {oblong}, {{"equation", "ii->i"}}, Code::kShape);
    expect_failure(Op::kEinsum, {oblong, b}, {{"equation", "ii,i->i"}}, Code::kShape);
    expect_failure(Op::kEinsum, {b, oblong}, {{"equation", "i,ii->"}}, Code::kShape);
  }
  auto stretched = run(Op::kEinsum, {f64s({1, 1}, {2}), b}, {{"equation", "ii,i->i"}});
  ASSERT_TRUE(stretched.ok()) << stretched.status().message();
  expect_equal((*stretched)[0], f64s({3}, {2, 4, 6}));
}

TEST(dot_general, pairs_axes_of_equal_sizes_only) {
  Tensor a = f64s({1, 2}, {1, 2}), b = f64s({3, 2}, {1, 2, 3, 4, 5, 6});
  expect_op(Op::kDotGeneral, {a, b}, {{"contract_a", List{1}}, {"contract_b", List{-1}}}, f64s({1, 3}, {5, 11, 17}));
  expect_failure(Op::kDotGeneral, {a, b},
                 {{"batch_a", List{0}}, {"batch_b", List{0}}, {"contract_a", List{1}}, {"contract_b", List{1}}},
                 Code::kShape);
  expect_failure(Op::kDotGeneral, {a, b}, {{"contract_a", List{1}}, {"contract_b", List{}}}, Code::kOption, "0 of b");
  expect_failure(Op::kDotGeneral, {a, b}, {{"contract_a", List{1, 1}}, {"contract_b", List{0, 1}}},
                 Code::kInvalidArgument, "twice");
}

TEST(resize, what_is_outside_of_a_crop_is_a_value_of_its_dtype) {
  NamedAttrs crop{{"scales", std::vector<double>{2, 2}},
                  {"coord", "tf_crop_and_resize"},
                  {"roi", std::vector<double>{0, 0, 2, 2}},
                  {"extrapolation", 7.5}};
  expect_failure(Op::kResize, {i64s({2, 2}, {1, 2, 3, 4})}, crop, Code::kOption, "7.5 is not a value of i64");
}

// However far the kernel would reach.
TEST(resize, a_tiny_scale_leaves_nothing) {
  for (double scale : {1e-17, 1e-300})
    for (int64_t antialias : {0, 1}) {
      NamedAttrs attrs{{"scales", std::vector<double>{scale}}, {"mode", "linear"}, {"antialias", antialias}};
      auto got = run(Op::kResize, {f32s({3}, {1, 2, 3})}, attrs);
      ASSERT_TRUE(got.ok()) << scale << ": " << got.status().message();
      expect_equal((*got)[0], f32s({0}, {}));
    }
}

TEST(resize, with_both_the_sizes_are_those_of_the_result_and_the_scales_give_the_coordinates) {
  NamedAttrs both{{"sizes", std::vector<Dim>{3}}, {"scales", std::vector<double>{0.5}}, {"mode", "linear"}};
  expect_op(Op::kResize, {f64s({4}, {1, 2, 4, 8})}, both, f64s({3}, {1.5, 6, 8}));
  both[2].second = "nearest";
  expect_op(Op::kResize, {f64s({4}, {1, 2, 4, 8})}, both, f64s({3}, {1, 4, 8}));
}

TEST(resize, refuses_what_gives_no_sizes) {
  Tensor x = f32s({2}, {1, 2});
  std::vector<double> two{2}, none{0};
  std::vector<Dim> three{3};
  expect_failure(Op::kResize, {x}, {}, Code::kOption, "'sizes' or 'scales' must be given");
  expect_failure(Op::kResize, {x}, {{"sizes", three}, {"scales", none}}, Code::kOption, "must be positive");
  expect_failure(Op::kResize, {x}, {{"sizes", three}, {"scales", std::vector<double>{2, 2}}}, Code::kOption,
                 "do not suit");
  expect_failure(Op::kResize, {x}, {{"sizes", std::vector<Dim>{3, 3}}, {"scales", two}}, Code::kOption, "do not suit");
  NamedAttrs wide{
      {"sizes", three}, {"scales", std::vector<double>{1e-17}}, {"mode", "linear"}, {"antialias", int64_t{1}}};
  expect_failure(Op::kResize, {x}, wide, Code::kRange, "too small for 'antialias'");
}

// 0x1.6a09e8p-1 is no simple fraction, but it is one of 2^22.
TEST(resize, the_size_by_a_scale_is_exact_for_an_open_size) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {Dim::symbol("n")}));
  Expr y = b.op(Op::kResize, {x}, {{"scales", std::vector<double>{0x1.6a09e8p-1}}});
  ASSERT_TRUE(y.valid()) << b.status().message();
  EXPECT_EQ(y.dim(0).text(), "((2965821*n)/4194304)");
  EXPECT_FALSE(b.op(Op::kResize, {x}, {{"scales", std::vector<double>{1e-17}}}).valid());
  EXPECT_NE(b.status().message().find("is no fraction"), std::string::npos) << b.status().message();
}

}  // namespace rlx::test
