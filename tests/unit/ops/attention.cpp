// SPDX-License-Identifier: Apache-2.0
// Norms, attention and rope: golden values in oracle mode, and shapes that would broadcast by
// accident.
#include "ir/text.h"
#include "op_test.h"

namespace rlx::test {

static constexpr double kDigits = 5e-9;  // golden values have nine
static constexpr EvalOptions kOracle{.mode = EvalMode::kOracle};

// first, first + step, ... as f64, whose values in oracle mode are not rounded.
static Tensor ramp(const Sizes& dims, double first, double step) {
  std::vector<double> values(static_cast<size_t>(*element_count(std::span<const int64_t>(dims))));
  for (size_t i = 0; i < values.size(); i++) values[i] = first + step * static_cast<double>(i);
  return f64s(dims, values);
}

static void expect_golden(Op op, const std::vector<Tensor>& in, NamedAttrs attrs, const std::vector<Tensor>& expected) {
  expect_op(op, in, std::move(attrs), expected, kOracle, kDigits);
}

// ---- norms ----

static const Tensor kX = f64s({2, 4}, {1, 2, 3, 4, 2, -1, 0, 3});
static const Tensor kGamma = f64s({4}, {1, .5, 2, 1}), kBeta = f64s({4}, {0, 1, 0, -1});

TEST(norm, golden_values) {
  expect_golden(Op::kLayerNorm, {kX, kGamma, kBeta}, {},
                {f64s({2, 4}, {-1.34163542, 0.776394097, 0.894423613, 0.34163542, 0.632454267, 0.367545733, -1.26490853,
                               0.264908534}),
                 f64s({2, 1}, {2.5, 1}), f64s({2, 1}, {0.894423613, 0.632454267})});
  expect_op(Op::kGroupNorm, {ramp({1, 4, 2}, 1, 1), kGamma, kBeta}, {{"groups", int64_t{2}}},
            {f64s({1, 4, 2}, {-1.34163542, -0.447211807, 1.2236059, 1.67081771, -2.68327084, -0.894423613, -0.552788193,
                              0.34163542}),
             f64s({1, 2}, {2.5, 6.5}), f64s({1, 2}, {0.894423613, 0.894423613})},
            kOracle, kDigits);
  expect_golden(Op::kLayerNorm2d, {ramp({1, 3, 1, 2}, 1, 1)}, {{"eps", 1e-5}},
                {f64s({1, 3, 1, 2}, {-1.22474258, -1.22474258, 0, 0, 1.22474258, 1.22474258})});
  auto rms = run(Op::kRmsNorm, {kX, kGamma}, {}, kOracle);
  expect_equal(
      (*rms)[0],
      f64s({2, 4}, {0.365148347, 0.365148347, 2.19089008, 1.46059339, 1.06904481, -0.267261204, 0, 1.60356722}),
      kDigits);
}

TEST(norm, parameters_have_the_normalised_shape_and_the_dtype_of_x) {
  expect_failure(Op::kLayerNorm, {kX, f64s({1}, {2})}, {}, Code::kShape, "gamma is [1], which is not [4]");
  expect_failure(Op::kLayerNorm, {kX, f64s({2, 4}, std::vector<double>(8, 1))}, {}, Code::kShape, "gamma");
  expect_failure(Op::kRmsNorm, {kX, tensor(DType::kF32, {4}, {1, 1, 1, 1})}, {}, Code::kDtype,
                 "gamma is f32, x is f64");
  expect_failure(Op::kLayerNorm, {kX}, {{"axis", int64_t{2}}}, Code::kRange, "axis 2");
  expect_failure(Op::kRmsNorm, {kX}, {{"axis", int64_t{-3}}}, Code::kRange, "axis -3");
  expect_failure(Op::kGroupNorm, {ramp({1, 3, 2}, 0, 1)}, {{"groups", int64_t{2}}}, Code::kShape);
  expect_failure(Op::kGroupNormGrad, {ramp({3}, 0, 1), {}, ramp({1, 1}, 0, 1), ramp({1, 1}, 0, 1), ramp({3}, 0, 1)},
                 {{"groups", int64_t{1}}}, Code::kShape, "it has rank 1");
  Tensor c = f64s({2}, {1, 1});
  expect_failure(Op::kBatchNorm, {ramp({1, 3, 2}, 0, 1), c, c, c, c}, {}, Code::kShape, "[2], which is not [3]");
  auto half = run(Op::kLayerNorm, {tensor(DType::kF16, {1, 2}, {1, 3}), f32s({2}, {2, 2})});
  ASSERT_TRUE(half.ok()) << half.status().message();
  EXPECT_EQ((*half)[0].dtype(), DType::kF16);
  EXPECT_EQ((*half)[1].dtype(), DType::kF32);
}

// ---- attention ----

static const Tensor kQ = ramp({1, 4, 2, 2}, -0.7, 0.1), kK = ramp({1, 2, 3, 2}, -0.8, 0.15),
                    kV = ramp({1, 2, 3, 2}, -1, 0.2);

static Tensor y_of(const std::vector<double>& values) {
  return f64s({1, 4, 2, 2}, values);
}
static Tensor lse_of(const std::vector<double>& values) {
  return f64s({1, 4, 2}, values);
}

TEST(attention, golden_values) {
  expect_golden(
      Op::kAttention, {kQ, kK, kV}, {{"causal", int64_t{1}}},
      {y_of({-0.827403713, -0.627403713, -0.650604822, -0.450604822, -0.810596669, -0.610596669, -0.60565643,
             -0.40565643, 0.406361814, 0.606361814, 0.639453149, 0.839453149, 0.423229217, 0.623229217, 0.683451634,
             0.883451634}),
       lse_of({1.23648908, 1.38649722, 0.903149272, 1.13411762, 0.767899557, 1.34636513, 0.95803202, 1.6411985})});
  auto upper = run(Op::kAttention, {kQ, kK, kV}, {{"causal", int64_t{1}}, {"align", "upper_left"}}, kOracle);
  expect_equal((*upper)[0],
               y_of({-1, -0.8, -0.819034102, -0.619034102, -1, -0.8, -0.802121241, -0.602121241, 0.2, 0.4, 0.414822017,
                     0.614822017, 0.2, 0.4, 0.431554016, 0.631554016}),
               kDigits);
}

TEST(attention, a_length_leaves_rows_without_keys) {
  expect_golden(Op::kAttention, {kQ, kK, kV, {}, {}, i64s({1}, {1})}, {{"causal", int64_t{1}}},
                {y_of({0, 0, -1, -0.8, 0, 0, -1, -0.8, 0, 0, 0.2, 0.4, 0, 0, 0.2, 0.4}),
                 lse_of({-kInf, 0.466690476, -kInf, 0.0565685425, -kInf, 0.0919238816, -kInf, 0.190918831})});
  Tensor beyond = f64s({1, 2, 3, 2}, {-1, -0.8, kNan, kNan, kNan, kNan, 0.2, 0.4, kNan, kNan, kInf, kNan});
  for (const char* empty_row : {"zero", "mean", "nan"}) {
    auto got = run(Op::kAttention, {kQ, kK, beyond, {}, {}, i64s({1}, {1})},
                   {{"causal", int64_t{1}}, {"empty_row", empty_row}}, kOracle);
    std::vector<double> y = numbers((*got)[0]);
    EXPECT_EQ(y[2], -1);
    bool nan = std::string_view(empty_row) == "nan", mean = std::string_view(empty_row) == "mean";
    EXPECT_EQ(std::isnan(y[0]), nan);
    if (!nan) {
      EXPECT_EQ(y[0], mean ? -1 : 0);
    }
  }
}

TEST(attention, a_mask_alone_decides) {
  auto got = run(Op::kAttention, {kQ, kK, kV, bools({3}, {0, 1, 0})}, {}, kOracle);
  ASSERT_TRUE(got.ok()) << got.status().message();
  expect_equal((*got)[0], y_of({-.6, -.4, -.6, -.4, -.6, -.4, -.6, -.4, .6, .8, .6, .8, .6, .8, .6, .8}), kDigits);
}

TEST(attention, scores_capped_sloped_windowed_and_sunk) {
  expect_golden(
      Op::kAttention, {kQ, kK, kV, {}, {}, {}, f64s({4}, {.5, .25, .125, .0625}), f64s({4}, {0, .5, -1, 2})},
      {{"scale", 1.0}, {"softcap", 0.5}, {"window_left", int64_t{0}}, {"window_right", int64_t{1}}},
      {y_of({-0.324222509, -0.186490609, -0.105880601, 0, -0.243669506, -0.132468543, -0.0764499216, 0, 0.683915549,
             0.85591624, 0.802223479, 0.962668175, 0.23044993, 0.287964642, 0.181058317, 0.21726998}),
       lse_of({1.16686812, 0.753753188, 1.31194156, 0.9816708, 0.966137525, 0.620617568, 2.33907861, 2.1997424})});
}

TEST(attention, operands_do_not_broadcast_but_masks_do) {
  Tensor two = ramp({2, 4, 2, 2}, 0, 0.1);
  expect_failure(Op::kAttention, {two, kK, kV}, {}, Code::kShape, "k is [1,2,3,2], which is not [2,2,3,2]");
  expect_failure(Op::kAttention, {kQ, ramp({1, 4, 3, 2}, 0, 1), ramp({1, 1, 3, 2}, 0, 1)}, {}, Code::kShape, "v is");
  expect_failure(Op::kAttention, {kQ, kK, kV, bools({2, 1, 1, 3}, {1, 1, 1, 1, 1, 1})}, {}, Code::kShape,
                 "mask is [2,1,1,3], which does not stretch to [1,4,2,3]");
  expect_failure(Op::kAttention, {kQ, kK, kV, {}, {}, i64s({2}, {1, 1})}, {}, Code::kShape, "kv_len");
  expect_failure(Op::kAttention, {kQ, kK, kV, {}, {}, {}, {}, f64s({1}, {0})}, {}, Code::kShape, "sinks");
  expect_failure(Op::kAttention, {kQ, ramp({1, 3, 3, 2}, 0, 1), ramp({1, 3, 3, 2}, 0, 1)}, {}, Code::kShape,
                 "kv heads");
}

// ---- rope ----

static const double kCos[] = {-0.989992497, 0.990320699, 0.999979113},
                    kSin[] = {0.141120008, 0.138798101, 0.00646325907};

TEST(rope, golden_values_with_and_without_positions) {
  Tensor x = ramp({1, 1, 1, 8}, 1, 1), positions = i64s({1}, {3});
  auto tables = run(Op::kRopeTable, {positions}, {{"dim", int64_t{6}}}, kOracle);
  expect_equal((*tables)[0], f64s({1, 3}, {kCos[0], kCos[1], kCos[2]}), kDigits);
  expect_equal((*tables)[1], f64s({1, 3}, {kSin[0], kSin[1], kSin[2]}), kDigits);
  Tensor half = f64s({1, 1, 1, 8}, {-1.55447253, 1.28665089, 2.96115778, -3.81884998, 5.2291997, 6.01926445, 7, 8});
  Tensor turned = f64s({1, 1, 1, 8}, {-1.27223251, -1.83886499, 2.41576969, 4.3776771, 4.96111601, 6.03219097, 7, 8});
  expect_golden(Op::kRope, {x, (*tables)[0], (*tables)[1]}, {}, {half});
  expect_golden(Op::kRope, {x, (*tables)[0], (*tables)[1]}, {{"style", "interleaved"}}, {turned});
  Tensor all = i64s({4}, {0, 1, 2, 3});
  auto long_tables = run(Op::kRopeTable, {all}, {{"dim", int64_t{6}}}, kOracle);
  expect_golden(Op::kRope, {x, (*long_tables)[0], (*long_tables)[1], i64s({1}, {3})}, {}, {half});
  expect_golden(Op::kRope, {half, (*tables)[0], (*tables)[1]}, {{"inverse", int64_t{1}}}, {x});
}

TEST(rope, of_an_image_needs_a_number_of_heads_where_these_are_joined) {
  auto with = [](const char* attrs) {
    return parse(std::string("graph {\n x = input f32[1,4,8]\n y = axial_rope_2d(x) end_x=2 end_y=2") + attrs +
                 "\n output y\n}");
  };
  for (const char* attrs : {" num_heads=1", " num_heads=2"}) EXPECT_TRUE(with(attrs).ok()) << attrs;
  std::string_view needs = "layout bsx needs 'num_heads', at least 1";
  EXPECT_NE(with("").status().message().find(needs), std::string_view::npos) << with("").status().message();
}

TEST(rope, a_table_of_other_rows_is_refused_not_stretched) {
  Tensor x = ramp({1, 2, 1, 4}, 0, 1);
  expect_failure(Op::kRope, {x, ramp({3, 2}, 0, 1), ramp({3, 2}, 0, 1)}, {}, Code::kShape, "a table is [3,2]");
  expect_failure(Op::kRope, {x, ramp({3, 2}, 0, 1), ramp({1, 2}, 0, 1)}, {}, Code::kShape, "a table is [3,2]");
  expect_failure(Op::kRope, {x, ramp({1, 2}, 0, 1), ramp({3, 2}, 0, 1)}, {}, Code::kShape, "a table is [3,2]");
  expect_failure(Op::kRope, {x, ramp({2, 1, 2}, 0, 1), ramp({2, 1, 2}, 0, 1)}, {}, Code::kShape, "a table is [2,1,2]");
  expect_failure(Op::kRope, {x, ramp({1, 3}, 0, 1), ramp({1, 3}, 0, 1)}, {}, Code::kShape);
  expect_failure(Op::kRope, {x, ramp({1, 2}, 0, 1), ramp({1, 1}, 0, 1)}, {}, Code::kShape, "sin");
  expect_failure(Op::kRopeTable, {i64s({1}, {0})}, {{"dim", int64_t{3}}}, Code::kOption, "even");
}

// ---- gates and products ----

TEST(glu, halves_by_gate_first_and_an_odd_axis_is_refused) {
  Tensor x = f64s({4}, {1, 2, 30, 40});
  expect_op(Op::kGlu, {x}, {{"act", "relu2"}}, f64s({2}, {900, 3200}));
  expect_op(Op::kGlu, {x}, {{"act", "relu2"}, {"gate_first", int64_t{1}}}, f64s({2}, {30, 160}));
  expect_failure(Op::kGlu, {f64s({3}, {1, 2, 3})}, {}, Code::kShape);
}

TEST(linear, bias_is_a_row_and_dtypes_agree_but_for_blocks) {
  Tensor x = f32s({1, 2}, {1, 2}), w = f32s({2, 2}, {1, 2, 3, 4});
  expect_op(Op::kLinear, {x, w, f32s({2}, {10, 20})}, {}, f32s({1, 2}, {17, 30}));
  expect_failure(Op::kLinear, {x, w, f32s({3, 2}, {1, 2, 3, 4, 5, 6})}, {}, Code::kShape, "bias");
  expect_failure(Op::kLinear, {x, tensor(DType::kF16, {2, 2}, {1, 2, 3, 4})}, {}, Code::kDtype, "they must agree");
}

}  // namespace rlx::test
