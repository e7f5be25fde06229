// SPDX-License-Identifier: Apache-2.0
// The option `precision`: where values are cast, and what keeps its dtype.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/interpret.h"
#include "passes/pass.h"

namespace rlx {

static std::string printed(const char* text) {
  return print(*parse(text));
}

static std::string converted(const char* text, DType dtype) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  PassContext context;
  context.precision = dtype;
  auto made = assign_precision(*graph, context);
  if (!made.ok()) return std::string(made.status().message());
  EXPECT_TRUE(verify(*made).ok());
  return print(*made);
}

static constexpr char kHalf[] = R"(graph "g" (n) {
  x = input f16[n,4]
  i = input i32[n]
  w = param f16[4]
  %3 = mul(x, w) -> f16[n,4]
  %4 = cast(i) to=f16 -> f16[n]
  output y = %3
  output z = %4
}
)";

TEST(precision, casts_where_values_come_in_and_go_out) {
  EXPECT_EQ(converted(kHalf, DType::kF32), printed(R"(graph "g" (n) {
  x = input f16[n,4]
  i = input i32[n]
  w = param f16[4]
  %3 = cast(x) to=f32 -> f32[n,4]
  %4 = cast(w) to=f32 -> f32[4]
  %5 = mul(%3, %4) -> f32[n,4]
  %6 = cast(i) to=f32 -> f32[n]
  %7 = cast(%5) to=f16 -> f16[n,4]
  %8 = cast(%6) to=f16 -> f16[n]
  output y = %7
  output z = %8
})"));
}

TEST(precision, leaves_a_graph_that_has_the_dtype) {
  EXPECT_EQ(converted(kHalf, DType::kF16), printed(kHalf));
  EXPECT_EQ(converted(kHalf, DType::kNone), printed(kHalf));
}

// The bits of a float, and what a body's inputs are, are a matter of its own dtype.
TEST(precision, stops_at_bits_and_bodies) {
  EXPECT_EQ(converted(R"(graph "g" () {
  x = input f16[4]
  c = input bool[]
  %2 = bitcast(x) to=u16 -> u16[4]
  %3 = if(c, x) then=graph {
    a = input f16[4]
    %1 = neg(a) -> f16[4]
    output p = %1
  } else=graph {
    a = input f16[4]
    output p = a
  } -> f16[4]
  output y = %2
  output z = %3
})",
                      DType::kF32),
            printed(R"(graph "g" () {
  x = input f16[4]
  c = input bool[]
  %2 = bitcast(x) to=u16
  %3 = if(c, x) then=graph {
    a = input f16[4]
    %1 = neg(a)
    output p = %1
  } else=graph {
    a = input f16[4]
    output p = a
  }
  output y = %2
  output z = %3
})"));
}

// A half would make infinite what is f32 already and is read as f32: statistics, and what only passes through.
TEST(precision, rounds_nothing_that_is_read_as_it_was) {
  EXPECT_EQ(converted(R"(graph "g" () {
  x = input f32[2,4]
  %1, %1.mean, %1.inv_std = layer_norm(x) eps=1e-12
  %2 = neg(%1.inv_std)
  output y = %1
  output inv_std = %1.inv_std
  output negative = %2
  output same = x
})",
                      DType::kF16),
            printed(R"(graph "g" () {
  x = input f32[2,4]
  %1 = cast(x) to=f16
  %2, %2.mean, %2.inv_std = layer_norm(%1) eps=1e-12
  %3 = cast(%2.inv_std) to=f16
  %4 = neg(%3)
  %5 = cast(%2) to=f32
  %6 = cast(%4) to=f32
  output y = %5
  output inv_std = %2.inv_std
  output negative = %6
  output same = x
})"));
}

// A number that stands for infinity, as in (1 - mask) * -1e9, stays finite: 0 times infinity is NaN. Others become what
// a cast makes of them.
TEST(precision, masks_stay_finite) {
  auto text = [](const char* constant) {
    return std::string("graph \"g\" () {\n  x = input f16[2]\n  c = constant ") + constant +
           "\n  y = add(x, c)\n  output y\n}";
  };
  std::string wide = text("f32[2] {-3.4028235e+38, 1}");
  wide.replace(wide.find("f16"), 3, "f32");
  for (auto [dtype, number] :
       {std::pair(DType::kF16, "f16[2] {-65504, 1}"), {DType::kBF16, "bf16[2] {-3.3895314e+38, 1}"}})
    EXPECT_NE(converted(wide.c_str(), dtype).find(number), std::string::npos) << converted(wide.c_str(), dtype);
  for (const char* other : {"f32[2] {-1e+05, 1}", "f32[2] {-inf, 1}", "f32[2] {-1e+08, 1}"}) {
    std::string given = text(other);
    given.replace(given.find("f16"), 3, "f32");
    EXPECT_NE(converted(given.c_str(), DType::kF16).find(other), std::string::npos) << other;
  }
}

// As in x / max(norm(x), eps): with an eps of 0 a row of zeros would become NaN. A factor may become 0.
TEST(precision, an_eps_stays_above_zero) {
  auto text = [](const std::string& op) {
    return "graph \"g\" () {\n  x = input f32[2]\n  c = constant f32[] {1e-12}\n  y = " + op + "(x, c)\n  output y\n}";
  };
  for (const char* op : {"add", "max"}) {
    EXPECT_NE(converted(text(op).c_str(), DType::kF16).find("f16[] {5.9604645e-08}"), std::string::npos) << op;
    EXPECT_EQ(converted(text(op).c_str(), DType::kBF16).find("bf16[] {"), std::string::npos) << op;
  }
  EXPECT_EQ(converted(text("mul").c_str(), DType::kF16).find("e-08"), std::string::npos);
}

// -3.4e38 as a half would be -inf, and a row of nothing else would become NaN. What is also multiplied is no mask.
TEST(precision, masks_that_are_given_stay_finite) {
  constexpr char kText[] = R"(graph "g" () {
  x = input f32[2,4]
  mask = input f32[2]
  wide = broadcast_to(mask) shape=[4,2] -> f32[4,2]
  turned = transpose(wide) perm=[1,0] -> f32[2,4]
  product = mul(x, x) -> f32[2,4]
  sum = add(product, turned) -> f32[2,4]
  output y = sum
})";
  auto graph = parse(kText);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  PassContext context;
  context.precision = DType::kF16;
  auto made = assign_precision(*graph, context);
  ASSERT_TRUE(made.ok()) << made.status().message();
  Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 2>{2, 4}),
         mask = *Tensor::create(DType::kF32, std::array<int64_t, 1>{2});
  std::fill_n(x.as<float>(), 8, 1.0f);
  mask.as<float>()[0] = -3.4028235e38f, mask.as<float>()[1] = -INFINITY;
  auto results = interpret(*made, std::array{x, mask}, {});
  ASSERT_TRUE(results.ok()) << results.status().message();
  EXPECT_EQ((*results)[0].as<float>()[0], -65504);
  EXPECT_EQ((*results)[0].as<float>()[4], -INFINITY);
  std::string text = converted(kText, DType::kF16);
  EXPECT_EQ(text.find("clamp(x"), std::string::npos) << text;
}

// The bounds: what counts as a mask, and which numbers a half makes 0. Only what is added, or bounds, is kept.
TEST(precision, keeps_numbers_that_a_half_cannot_hold_up_to_the_bound) {
  struct Case {
    const char* given;
    const char* op;
    DType dtype;
    const char* made;  // empty: a cast
  };
  for (const Case& it : {Case{"f32[2] {1, -1e+09}", "add", DType::kF16, "f16[2] {1, -65504}"},
                         {"f32[2] {1, 1e+09}", "mul", DType::kF16, "f16[2] {1, 65504}"},
                         {"f32[2] {1, -999999936}", "add", DType::kF16, ""},
                         {"f32[2] {-1e+09, -inf}", "add", DType::kF16, "f16[2] {-65504, -inf}"},
                         {"f32[2] {1, -3.38e+38}", "add", DType::kBF16, ""},
                         {"f32[] {1e-12}", "max", DType::kF16, "f16[] {5.9604645e-08}"},
                         {"f32[1] {1e-12}", "max", DType::kF16, "f16[1] {5.9604645e-08}"},
                         {"f32[2] {1e-12, 1e-12}", "max", DType::kF16, ""},
                         {"f32[] {-1e-12}", "add", DType::kF16, ""},
                         {"f32[] {0}", "add", DType::kF16, ""},
                         {"f32[] {1e-07}", "add", DType::kF16, ""},
                         {"f32[] {1e-45}", "add", DType::kBF16, "bf16[] {1.1754944e-38}"}}) {
    std::string text = converted(("graph \"g\" () {\n  x = input f32[2]\n  c = constant " + std::string(it.given) +
                                  "\n  y = " + it.op + "(x, c)\n  output y\n}")
                                     .c_str(),
                                 it.dtype);
    bool is_made = text.find(" = constant " + std::string(it.made)) != std::string::npos && *it.made;
    EXPECT_EQ(is_made, *it.made != 0) << it.given << "\n" << text;
    EXPECT_EQ(text.find(" = constant " + std::string(it.given)) == std::string::npos, *it.made != 0) << text;
  }
}

// A bound of a clamp is one; a number that is also a factor is none.
TEST(precision, an_eps_that_is_a_factor_too_is_none) {
  auto text = [](const std::string& statements) {
    return converted(
        ("graph \"g\" () {\n  x = input f32[2]\n  c = constant f32[] {1e-12}\n" + statements + "}").c_str(),
        DType::kF16);
  };
  EXPECT_NE(text("y = clamp(x, c)\noutput y\n").find("e-08"), std::string::npos);
  EXPECT_EQ(text("y = max(x, c)\nz = mul(y, c)\noutput z\n").find("e-08"), std::string::npos);
  EXPECT_EQ(text("y = min(x, c)\noutput y\n").find("e-08"), std::string::npos);
}

// What is only added is bounded; not what is an output too, or is also multiplied behind a view, or is a half already.
TEST(precision, what_is_more_than_a_summand_is_not_bounded) {
  auto text = [](const std::string& statements, DType dtype = DType::kF16) {
    return converted(("graph \"g\" () {\n  x = input f32[2,2]\n  h = input bf16[2,2]\n" + statements + "}").c_str(),
                     dtype);
  };
  EXPECT_NE(text("y = add(x, x)\noutput y\n").find("clamp(x"), std::string::npos);
  EXPECT_NE(text("y = add(x, x)\noutput y\n", DType::kBF16).find("3.3895314e+38"), std::string::npos);
  EXPECT_EQ(text("y = add(x, x)\noutput y\noutput x\n").find("clamp("), std::string::npos);
  EXPECT_EQ(text("t = transpose(x) perm=[1,0]\ny = add(x, x)\nz = mul(y, t)\noutput z\n").find("clamp("),
            std::string::npos);
  EXPECT_EQ(text("y = add(h, h)\noutput y\n").find("clamp("), std::string::npos);
  EXPECT_EQ(text("y = exp(x)\nz = add(y, y)\noutput z\n").find("clamp("), std::string::npos);
}

}  // namespace rlx
