// SPDX-License-Identifier: Apache-2.0
// Elementwise composites, bitcast and the parts of complex numbers: golden values, closed forms, special values.
#include "op_test.h"
#include "ops/fused_act.h"

namespace rlx::test {

static const Sizes kFive{5};
static const std::vector<double> kPoints{-3, -0.5, 0, 0.5, 1.5};
static constexpr double kDigits = 2e-9;  // of the golden values

static void expect_at_points(Op op, const std::vector<double>& expected, NamedAttrs attrs = {}) {
  expect_op(op, {f64s(kFive, kPoints)}, std::move(attrs), f64s(kFive, expected), {}, kDigits);
}

TEST(activation, golden_values) {
  expect_at_points(Op::kGelu, {-0.00404969409, -0.154268769, 0, 0.345731231, 1.3997892});
  expect_at_points(Op::kGelu, {-0.00363739208, -0.15428599, 0, 0.34571401, 1.39957158}, {{"approx", "tanh"}});
  expect_at_points(Op::kSilu, {-0.14227762, -0.188770334, 0, 0.311229666, 1.22636171});
  expect_at_points(Op::kSilu, {-0.0180713097, -0.149611563, 0, 0.350388437, 1.3916622}, {{"beta", 1.702}});
  expect_at_points(Op::kSigmoid, {0.0474258732, 0.377540669, 0.5, 0.622459331, 0.817574476});
  expect_at_points(Op::kSoftplus, {0.0485873516, 0.474076984, 0.693147181, 0.974076984, 1.70141328});
  expect_at_points(Op::kMish, {-0.145647461, -0.220743775, 0, 0.375245211, 1.40337827});
  expect_at_points(Op::kElu, {-0.950212932, -0.39346934, 0, 0.5, 1.5});
  expect_at_points(Op::kCelu, {-1.55373968, -0.442398434, 0, 0.5, 1.5}, {{"alpha", 2.0}});
  expect_at_points(Op::kSelu, {-1.67056873, -0.69175819, 0, 0.525350511, 1.57605153});
  expect_at_points(Op::kHardSigmoid, {0, 0.4, 0.5, 0.6, 0.8});
  expect_at_points(Op::kHardSwish, {0, -0.208333333, 0, 0.291666667, 1.125});
  expect_at_points(Op::kLogSigmoid, {-3.0485873516, -0.974076984, -0.693147181, -0.474076984, -0.20141328});
  expect_at_points(Op::kSoftsign, {-0.75, -1.0 / 3, 0, 1.0 / 3, 0.6});
}

TEST(activation, pieces_of_lines) {
  expect_at_points(Op::kRelu, {0, 0, 0, 0.5, 1.5});
  expect_at_points(Op::kLeakyRelu, {-0.6, -0.1, 0, 0.5, 1.5}, {{"alpha", 0.2}});
  expect_at_points(Op::kThresholdedRelu, {0, 0, 0, 0, 1.5});
  expect_at_points(Op::kShrink, {-2, 0, 0, 0, 0.5}, {{"lambd", 0.5}, {"bias", 1.0}});
  expect_op(Op::kPrelu, {f64s(kFive, kPoints), f64s({}, {0.5})}, {}, f64s(kFive, {-1.5, -0.25, 0, 0.5, 1.5}));
  Tensor lo = f64s({}, {-1}), hi = f64s({}, {1});
  expect_op(Op::kClamp, {f64s(kFive, kPoints), lo, hi}, {}, f64s(kFive, {-1, -0.5, 0, 0.5, 1}));
  expect_op(Op::kClamp, {f64s(kFive, kPoints), {}, hi}, {}, f64s(kFive, {-3, -0.5, 0, 0.5, 1}));
  expect_op(Op::kClamp, {f64s(kFive, kPoints), hi, lo}, {}, f64s(kFive, {-1, -1, -1, -1, -1}));
}

TEST(activation, integers_shrink_by_bounds_that_mean_the_same) {
  expect_op(Op::kShrink, {i32s({4}, {-2, -1, 1, 2})}, {{"lambd", 1.5}}, i32s({4}, {-2, 0, 0, 2}));
  expect_op(Op::kShrink, {tensor(DType::kU8, {2}, {1, 200})}, {{"lambd", 1.5}, {"bias", 1.0}},
            tensor(DType::kU8, {2}, {0, 199}));
  expect_failure(Op::kShrink, {i32s({1}, {1})}, {{"bias", 0.5}}, Code::kOption, "0.5 is not a value of i32");
}

TEST(activation, nan_and_infinity) {
  Tensor x = f32s({3}, {kNan, kInf, -kInf});
  expect_op(Op::kRelu, {x}, {}, f32s({3}, {kNan, kInf, 0}));
  expect_op(Op::kSoftplus, {x}, {}, f32s({3}, {kNan, kInf, 0}));
  expect_op(Op::kElu, {x}, {}, f32s({3}, {kNan, kInf, -1}));
  expect_op(Op::kSilu, {x}, {}, f32s({3}, {kNan, kInf, kNan}));
  expect_op(Op::kGelu, {x}, {}, f32s({3}, {kNan, kInf, kNan}));
  expect_op(Op::kThresholdedRelu, {x}, {}, f32s({3}, {0, kInf, 0}));
  expect_op(Op::kClamp, {x, f32s({}, {0}), f32s({}, {1})}, {}, f32s({3}, {kNan, 1, 0}));
  expect_failure(Op::kCelu, {x}, {{"alpha", 0.0}}, Code::kOption, "alpha");
}

TEST(activation, every_name_of_act_is_applied) {
  auto at_two = [](std::string_view act) {
    Graph graph;
    Builder b(graph);
    Expr y = apply_act(b.wrap(*graph.add_input("x", DType::kF64, {})), act);
    EXPECT_TRUE(b.status().ok() && graph.add_output("y", y.value()).ok()) << act;
    return (*interpret(graph, std::array{f64s({}, {2})}))[0].as<double>()[0];
  };
  std::map<std::string_view, double> expected{{"none", 2},
                                              {"relu", 2},
                                              {"relu2", 4},
                                              {"gelu", 1 + std::erf(std::sqrt(2.0))},
                                              {"silu", 2 / (1 + std::exp(-2.0))},
                                              {"sigmoid", 1 / (1 + std::exp(-2.0))},
                                              {"quick_gelu", 2 / (1 + std::exp(-3.404))},
                                              {"tanh", std::tanh(2.0)},
                                              {"hard_sigmoid", 0.9},
                                              {"hard_swish", 5.0 / 3},
                                              {"leaky_relu", 2},
                                              {"elu", 2},
                                              {"softplus", std::log1p(std::exp(2.0))},
                                              {"mish", 2 * std::tanh(std::log1p(std::exp(2.0)))},
                                              {"gelu_tanh", 1.954597694087775}};
  size_t named = 0;
  for (std::string_view rest = activation_choices(); !rest.empty(); named++) {
    std::string_view act = rest.substr(0, rest.find('|'));
    rest.remove_prefix(std::min(act.size() + 1, rest.size()));
    ASSERT_TRUE(expected.contains(act)) << act;
    EXPECT_NEAR(at_two(act), expected[act], 1e-12) << act;
  }
  EXPECT_EQ(named, expected.size());
}

TEST(math, inverse_and_hyperbolic_functions_agree_with_the_library) {
  struct Row {
    Op op;
    double (*meaning)(double);
    std::vector<double> at;
  };
  const std::vector<double> unit{-1, -0.9, -0.3, -1e-9, 0, 1e-5, 0.5, 1},
      line{-700, -30, -2, -1e-9, 0, 1e-5, 0.9, 1.1, 20};
  const Row rows[] = {{Op::kAsin, std::asin, unit},
                      {Op::kAcos, std::acos, unit},
                      {Op::kAtan, std::atan, line},
                      {Op::kTan, std::tan, line},
                      {Op::kSinh, std::sinh, line},
                      {Op::kCosh, std::cosh, line},
                      {Op::kAsinh, std::asinh, line},
                      {Op::kAtanh, std::atanh, unit},
                      {Op::kExp2, std::exp2, line},
                      {Op::kAcosh, std::acosh, {1, 1.0000001, 1.5, 30, 1e4, 1e200}},
                      {Op::kAsinh, std::asinh, {-1e200, 1e17}},
                      {Op::kLog2, std::log2, {0, 0.3, 8}},
                      {Op::kLog10, std::log10, {0, 0.3, 1000}},
                      {Op::kCeil, std::ceil, {-1.5, -0.2, 0.2, 3, kInf}},
                      {Op::kTrunc, std::trunc, {-1.5, -0.2, 0.2, 3.9, -kInf}}};
  for (const Row& row : rows) {
    std::vector<double> expected;
    for (double x : row.at) expected.push_back(row.meaning(x));
    Sizes dims{static_cast<int64_t>(row.at.size())};
    auto got = run(row.op, {f64s(dims, row.at)});
    ASSERT_TRUE(got.ok()) << got.status().message();
    for (size_t i = 0; i < expected.size(); i++) {
      double y = (*got)[0].as<double>()[i];
      EXPECT_TRUE(y == expected[i] || std::fabs(y - expected[i]) <= 1e-14 * std::fabs(expected[i]))
          << op_table().info(row.op).name << "(" << row.at[i] << ") is " << y << ", not " << expected[i];
    }
  }
}

TEST(math, outside_their_domains) {
  expect_op(Op::kAsin, {f64s({2}, {1.5, kNan})}, {}, f64s({2}, {kNan, kNan}));
  expect_op(Op::kAcosh, {f64s({2}, {0.5, kInf})}, {}, f64s({2}, {kNan, kInf}));
  expect_op(Op::kAtanh, {f64s({3}, {-1, 1, 2})}, {}, f64s({3}, {-kInf, kInf, kNan}));
  expect_op(Op::kRsqrt, {f64s({3}, {0, 4, -1})}, {}, f64s({3}, {kInf, 0.5, kNan}));
  expect_op(Op::kSign, {f32s({4}, {-2, 0, kNan, kInf})}, {}, f32s({4}, {-1, 0, kNan, 1}));
  expect_op(Op::kSign, {tensor(DType::kU8, {2}, {0, 200})}, {}, tensor(DType::kU8, {2}, {0, 1}));
  expect_op(Op::kSquare, {tensor(DType::kI8, {1}, {100})}, {}, tensor(DType::kI8, {1}, {16}));
}

TEST(math, division_rounds_down) {
  Tensor a = i32s({4}, {-7, 7, -7, 5}), b = i32s({4}, {2, -2, -2, 0});
  expect_op(Op::kFloorDiv, {a, b}, {}, i32s({4}, {-4, -4, 3, -1}));
  expect_op(Op::kFloorMod, {a, b}, {}, i32s({4}, {1, -1, -1, 5}));
  expect_op(Op::kFloorMod, {f64s({3}, {-1, -1, 5.5}), f64s({3}, {kInf, 3, -2})}, {}, f64s({3}, {kInf, 2, -0.5}));
  expect_op(Op::kFloorDiv, {f64s({2}, {-7, 1}), f64s({2}, {2, 0})}, {}, f64s({2}, {-4, kInf}));
  expect_op(Op::kFloorDiv, {tensor(DType::kU8, {1}, {7}), tensor(DType::kU8, {1}, {2})}, {},
            tensor(DType::kU8, {1}, {3}));
}

TEST(compare, tests_of_floats_and_bits) {
  Tensor x = f32s({4}, {kNan, kInf, -kInf, 1});
  expect_op(Op::kIsNan, {x}, {}, bools({4}, {1, 0, 0, 0}));
  expect_op(Op::kIsFinite, {x}, {}, bools({4}, {0, 0, 0, 1}));
  expect_op(Op::kIsInf, {x}, {}, bools({4}, {0, 1, 1, 0}));
  expect_op(Op::kIsInf, {x}, {{"neg", int64_t{0}}}, bools({4}, {0, 1, 0, 0}));
  expect_op(Op::kIsInf, {x}, {{"neg", int64_t{0}}, {"pos", int64_t{0}}}, bools({4}, {0, 0, 0, 0}));
  expect_op(Op::kNe, {x, x}, {}, bools({4}, {1, 0, 0, 0}));
  expect_op(Op::kGt, {x, f32s({}, {0})}, {}, bools({4}, {0, 1, 0, 1}));
  expect_op(Op::kGe, {bools({2}, {0, 1}), bools({2}, {1, 1})}, {}, bools({2}, {0, 1}));
  expect_op(Op::kBitNot, {tensor(DType::kU16, {2}, {0, 1})}, {}, tensor(DType::kU16, {2}, {65535, 65534}));
  expect_op(Op::kBitNot, {i64s({1}, {5})}, {}, i64s({1}, {-6}));
  expect_op(Op::kBitNot, {bools({2}, {0, 1})}, {}, bools({2}, {1, 0}));
}

// Numbers just above the middle of two halves, which f32 or f64 would take for the middle.
TEST(cast, a_number_is_rounded_once) {
  Tensor wide = *Tensor::create(DType::kI64, std::array<int64_t, 1>{2});
  wide.as<int64_t>()[0] = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  wide.as<int64_t>()[1] = -wide.as<int64_t>()[0];
  double next = 0x1p62 + 0x1p55;
  expect_op(Op::kCast, {wide}, {{"to", "bf16"}}, tensor(DType::kBF16, {2}, {next, -next}));
  expect_op(Op::kCast, {i32s({2}, {0x1010001, 0x1010000})}, {{"to", "bf16"}},
            tensor(DType::kBF16, {2}, {0x1020000, 0x1000000}));
  expect_op(Op::kCast, {f64s({2}, {1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11})}, {{"to", "f16"}},
            tensor(DType::kF16, {2}, {1 + 0x1p-10, 1}));
  expect_op(Op::kCast, {f64s({1}, {1.0625 + 0x1p-40})}, {{"to", "f8e4m3"}, {"saturate", int64_t{1}}},
            tensor(DType::kF8E4M3, {1}, {1.125}));
}

// In f64 the sum is 1 + 2^-11 + 2^-40: rounded to f32 on the way it would be the middle of two halves.
TEST(sums, of_halves_are_rounded_once) {
  Tensor a = tensor(DType::kF16, {1, 3}, {1, 0x1p-11, 0x1p-20}), b = tensor(DType::kF16, {3, 1}, {1, 1, 0x1p-20});
  expect_op(Op::kMatmul, {a, b}, {}, tensor(DType::kF16, {1, 1}, {1 + 0x1p-10}));
}

TEST(bitcast, bytes_stay_and_the_last_axis_follows_the_widths) {
  auto to = [](const char* dtype) { return NamedAttrs{{"to", dtype}}; };
  expect_op(Op::kBitcast, {f32s({2}, {1, -0.0})}, to("u32"), tensor(DType::kU32, {2}, {0x3f800000, 0x80000000}));
  expect_op(Op::kBitcast, {tensor(DType::kU32, {}, {0x01020304})}, to("u8"), tensor(DType::kU8, {4}, {4, 3, 2, 1}));
  auto back = run(Op::kBitcast, {tensor(DType::kU8, {4}, {4, 3, 2, 1})}, to("u32"));
  ASSERT_TRUE(back.ok());
  expect_equal((*back)[0], tensor(DType::kU32, {}, {0x01020304}));
  expect_failure(Op::kBitcast, {tensor(DType::kU8, {3}, {4, 3, 2})}, to("u32"), Code::kShape, "last axis of 4");
}

TEST(cast, rounds_integers_in_oracle_mode_as_in_typed_mode) {
  for (EvalMode mode : {EvalMode::kTyped, EvalMode::kOracle}) {
    auto got = run(Op::kCast, {tensor(DType::kU32, {1}, {4294967291})}, {{"to", "f32"}}, {.mode = mode});
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(numbers((*got)[0]), (std::vector<double>{4294967296}));
  }
}

// In oracle mode floats are stored as f64; their bits are still those of the declared dtype.
TEST(bitcast, means_the_declared_dtype_in_oracle_mode) {
  auto got = run(Op::kBitcast, {f32s({1}, {1.5})}, {{"to", "i32"}}, {.mode = EvalMode::kOracle});
  ASSERT_TRUE(got.ok());
  expect_equal((*got)[0], i32s({1}, {0x3fc00000}));
  got = run(Op::kBitcast, {tensor(DType::kU16, {1}, {0x3e00})}, {{"to", "f16"}}, {.mode = EvalMode::kOracle});
  ASSERT_TRUE(got.ok());
  expect_equal((*got)[0], f64s({1}, {1.5}));
}

// Where both sides are stored wide, numbers that become parts keep what f64 knows of them.
TEST(bitcast, keeps_what_the_oracle_knows_of_parts) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {2})), y = x / b.scalar(DType::kF32, 3);
  Expr z = b.op(Op::kBitcast, {y}, {{"to", "c64"}}), again = b.op(Op::kBitcast, {z}, {{"to", "f32"}});
  ASSERT_TRUE(graph.add_output("y", (again - y).value()).ok()) << b.status().message();
  auto got = interpret(graph, std::array{f32s({2}, {1, 5})}, {}, {.mode = EvalMode::kOracle});
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_equal((*got)[0], f64s({2}, {0, 0}));
}

TEST(complex, parts_and_what_is_made_of_them) {
  Graph graph;
  Builder b(graph);
  Expr re = b.wrap(*graph.add_input("re", DType::kF32, {2})), im = b.wrap(*graph.add_input("im", DType::kF32, {}));
  Expr z = binary(Op::kComplex, re, im), conj = unary(Op::kConj, z);
  int outputs = 0;
  for (Expr y : {unary(Op::kReal, z), unary(Op::kImag, conj), unary(Op::kAngle, z), unary(Op::kAbsSquared, z), abs(z)})
    ASSERT_TRUE(graph.add_output("y" + std::to_string(outputs++), y.value()).ok()) << b.status().message();
  EXPECT_EQ(text_of(z.type()), "c64[2]");
  for (EvalMode mode : {EvalMode::kTyped, EvalMode::kOracle}) {
    auto got = interpret(graph, std::array{f32s({2}, {3, -4}), f32s({}, {4})}, {}, {.mode = mode});
    ASSERT_TRUE(got.ok()) << got.status().message();
    auto at = [&](size_t i) { return numbers((*got)[i]); };
    EXPECT_EQ(at(0), (std::vector<double>{3, -4}));
    EXPECT_EQ(at(1), (std::vector<double>{-4, -4}));
    EXPECT_NEAR(at(2)[1], std::atan2(4, -4), 1e-6);
    EXPECT_EQ(at(3), (std::vector<double>{25, 32}));
    EXPECT_EQ(at(4)[0], 5);
  }
}

TEST(wide, a_half_composite_rounds_once) {
  Tensor x = tensor(DType::kF16, {1}, {0.1});
  auto y = run(Op::kSoftplus, {x});
  ASSERT_TRUE(y.ok());
  double exact = std::log1p(std::exp(element_as_f64(x, 0)));
  EXPECT_EQ(element_as_f64((*y)[0], 0), static_cast<double>(static_cast<float>(f16(static_cast<float>(exact)))));
  expect_op(Op::kSquare, {tensor(DType::kF16, {1}, {2048})}, {}, tensor(DType::kF16, {1}, {kInf}));
}

}  // namespace rlx::test
