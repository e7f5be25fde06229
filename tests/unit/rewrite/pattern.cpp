// SPDX-License-Identifier: Apache-2.0
// What patterns match, by rules of one pattern each: `neg` of what the pattern's wildcard is bound to shows the match.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "ir/text.h"
#include "rewrite/rule_set.h"

namespace rlx {

using namespace patterns;

static Graph parsed(const std::string& body) {
  auto graph = parse("graph \"g\" (n) {\n" + body + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

static size_t count(const Graph& graph, Op op) {
  auto is_op = [&](const Node& node) { return node.op == op; };
  return static_cast<size_t>(std::count_if(graph.nodes().begin(), graph.nodes().end(), is_op));
}

// The graph after one rule, which makes `result` of a match; and why it nearly fired.
struct Outcome {
  Graph graph;
  std::string miss;
};

static Outcome apply(const std::string& body, const Pattern& pattern, std::function<Expr(const Match&)> result,
                     Grade grade = close) {
  RuleSet rules;
  rules.add(grade, "rule", pattern, std::move(result));
  RewriteReport report;
  RewriteOptions options;
  options.report = &report;
  Graph graph = *rewrite(parsed(body), rules, options);
  std::string miss;
  for (const RewriteReport::Line& line : report.lines)
    if (!line.reason.empty()) miss = line.reason;
  return {std::move(graph), miss};
}

// exp(x) under views, whose base becomes the operand of neg.
static Outcome neg_of_base(const std::string& body, ViewTest passes = any_view) {
  Pattern x = any();
  return apply(body, op(Op::kExp, {through_views(x, passes)}),
               [=](const Match& m) { return reshape(-m[x], m.anchor().dims()); });
}

static const char* kChain = R"(
  x = input f32[4,n]
  t = transpose(x) perm=[1,0]
  r = reshape(t) shape=[n,2,2]
  y = exp(r)
  output y)";

TEST(pattern, looks_through_all_views_that_pass) {
  Graph graph = neg_of_base(kChain).graph;
  EXPECT_EQ(count(graph, Op::kTranspose), 0u);
  EXPECT_EQ(count(graph, Op::kExp), 0u);
}

TEST(pattern, stops_at_the_first_view_that_does_not_pass) {
  Graph graph = neg_of_base(kChain, any_reshape).graph;
  EXPECT_EQ(count(graph, Op::kTranspose), 1u);
  EXPECT_EQ(count(graph, Op::kExp), 0u);
  EXPECT_EQ(graph.node(graph.node(graph.outputs()[0].value).in[0].node).in[0].node, 1u) << print(graph);
}

TEST(pattern, needs_no_view_to_look_through) {
  EXPECT_EQ(count(neg_of_base("x = input f32[4]\n y = exp(x)\n output y").graph, Op::kNeg), 1u);
}

TEST(pattern, rows_are_kept_where_the_last_axis_is) {
  const char* kSplit = "x = input f32[4,n]\n r = reshape(x) shape=[2,2,n]\n y = exp(r)\n output y";
  const char* kMerged = "x = input f32[2,2,n]\n r = reshape(x) shape=[2,2*n]\n y = exp(r)\n output y";
  EXPECT_EQ(neg_of_base(kSplit, keeps_rows).graph.nodes()[1].in[0].node, 0u);
  EXPECT_EQ(neg_of_base(kMerged, keeps_rows).graph.nodes()[1].op, Op::kReshape);
}

static Outcome sin_of_views_of_matmul(const std::string& more) {
  Pattern a = any(), b = any();
  return apply(R"(
    a = input f32[2,3]
    b = input f32[3,4]
    p = matmul(a, b)
    r = reshape(p) shape=[4,2]
    y = sin(r)
    output y
    )" + more,
               op(Op::kSin, {through_views(op(Op::kMatmul, {a, b}))}),
               [=](const Match& m) { return reshape(-matmul(m[a], m[b]), m.anchor().dims()); });
}

TEST(pattern, what_lies_under_views_vanishes_with_them) {
  EXPECT_EQ(count(sin_of_views_of_matmul("").graph, Op::kSin), 0u);
}

TEST(pattern, what_lies_under_a_view_that_stays_is_not_computed_twice) {
  for (const char* use : {"z = cos(r)\n output z", "z = cos(p)\n output z", "output r"}) {
    Outcome outcome = sin_of_views_of_matmul(use);
    EXPECT_EQ(count(outcome.graph, Op::kSin), 1u) << use;
    EXPECT_NE(outcome.miss.find("has another use"), std::string::npos) << outcome.miss;
  }
}

TEST(pattern, what_lies_under_a_matched_view_that_stays_is_not_computed_twice) {
  Pattern a = any(), b = any();
  Outcome outcome = apply(R"(
    a = input f32[2,3]
    b = input f32[3,4]
    p = matmul(a, b)
    r = reshape(p) shape=[4,2]
    y = sin(r)
    output y
    output r)",
                          op(Op::kSin, {op(Op::kReshape, {op(Op::kMatmul, {a, b})})}),
                          [=](const Match& m) { return reshape(-matmul(m[a], m[b]), m.anchor().dims()); });
  EXPECT_EQ(count(outcome.graph, Op::kSin), 1u);
}

TEST(pattern, views_stand_again_on_another_base) {
  Pattern x = any(), viewed = through_views(op(Op::kCast, {x}));
  Outcome outcome = apply(R"(
    x = input f16[4,n]
    w = cast(x) to=f32
    t = transpose(w) perm=[1,0]
    r = reshape(t) shape=[n,2,2]
    y = cast(r) to=f16
    output y)",
                          op(Op::kCast, {viewed}), [=](const Match& m) {
                            Expr under = m.under_views(m[viewed]);
                            return m.is(under, Op::kCast) ? m.with_views(m[viewed], under, m[x]) : Expr();
                          });
  EXPECT_EQ(count(outcome.graph, Op::kCast), 0u);
  EXPECT_EQ(count(outcome.graph, Op::kTranspose), 1u);
  EXPECT_EQ(count(outcome.graph, Op::kReshape), 1u);
}

// Of 1, 0.5 and the like the dtype holds the number itself; of others the nearest one. The numbers beside it are
// others.
TEST(pattern, a_number_of_halves_is_not_the_one_beside_it) {
  struct Half {
    const char* name;
    int digits;
  };
  for (auto [name, digits] : {Half{"f16", 11}, Half{"bf16", 8}})
    for (double number : {1.0, 0.5, 3.0, 0.70710678, 1.0 / 6, 0.044715}) {
      double below = std::ldexp(1.0, std::ilogb(number) - digits + 1), held = std::nearbyint(number / below) * below;
      bool is_power = held == std::exp2(std::ilogb(held));
      for (double constant : {held, held + below, held - (is_power ? below / 2 : below)}) {
        std::string body = std::string(" x = input ") + name + "[n]\n t = tanh(x)\n c = constant " + name + "[] {" +
                           std::to_string(constant) + "}\n z = LINE\n y = exp(z)\n output y";
        for (const char* line : {"add(t, c)", "mul(t, c)"}) {
          Pattern x = any(), t = op(Op::kTanh, {x});
          std::string text = body;
          text.replace(text.find("LINE"), 4, line);
          Pattern inner = line[0] == 'a' ? t + number : product({t}, number);
          Outcome outcome = apply(text, op(Op::kExp, {inner}), [=](const Match& m) { return -m[x]; });
          EXPECT_EQ(count(outcome.graph, Op::kNeg), constant == held ? 1u : 0u) << text << number;
        }
      }
    }
}

// Not even a product that is 1 again, as its first part may overflow.
TEST(pattern, a_rule_that_keeps_every_bit_takes_no_other_number) {
  struct Case {
    const char *line, *numbers;
    bool is_near, is_same;
  };
  Pattern x = any(), t = op(Op::kTanh, {x});
  for (auto [line, numbers, is_near, is_same] : {
           Case{"z = mul(t, a)", "1.0000018 1", true, false},
           Case{"m = mul(t, a)\n z = mul(m, b)", "2 0.5", true, false},
           Case{"m = mul(t, a)\n z = mul(m, b)", "1 1", true, true},
           Case{"z = mul(t, a)", "1.00001 1", false, false},
           Case{"z = add(t, a)", "1.0000018 1", true, false},
           Case{"z = add(t, a)", "1 1", true, true},
       })
    for (Grade grade : {exact, close}) {
      std::istringstream in(numbers);
      std::string a, b;
      in >> a >> b;
      std::string body = "x = input f32[n]\n t = tanh(x)\n a = constant f32[] {" + a + "}\n b = constant f32[] {" + b +
                         "}\n " + line + "\n y = exp(z)\n output y";
      Pattern inner = std::string(line).find("add") != std::string::npos ? t + 1.0 : product({t});
      Outcome outcome = apply(
          body, op(Op::kExp, {inner}), [=](const Match& m) { return -m[x]; }, grade);
      EXPECT_EQ(count(outcome.graph, Op::kNeg), (grade == exact ? is_same : is_near) ? 1u : 0u) << body;
    }
}

// Of one factor and the number 1 nothing else is left.
TEST(pattern, a_product_may_be_one_value) {
  Pattern x = any(), t = op(Op::kTanh, {x});
  std::string body = "x = input f32[n]\n t = tanh(x)\n y = exp(t)\n output y";
  Outcome outcome = apply(body, op(Op::kExp, {product({t})}), [=](const Match& m) { return -m[x]; });
  EXPECT_EQ(count(outcome.graph, Op::kNeg), 1u);
}

TEST(pattern, a_node_is_rebuilt_with_other_inputs_and_attributes) {
  Pattern x = any(), product = op(Op::kLinear, {any()});
  Outcome outcome =
      apply(R"(
    x = input f32[2,3]
    w = param f32[3,3]
    b = param f32[3]
    p = linear(x, w)
    y = add(p, b)
    output y)",
            product + x, [=](const Match& m) {
              return m.rebuilt(m[product], {{2, m[x]}}, m.attrs(product).with("act", std::string("relu")))[0];
            });
  const Node& linear = outcome.graph.node(outcome.graph.outputs()[0].value);
  EXPECT_EQ(linear.op, Op::kLinear);
  EXPECT_EQ(linear.in.size(), 3u);
  EXPECT_EQ(linear.attrs.str("act"), "relu");
}

// Of what is between the root and the wildcards, a node with another use may be computed twice if it is cheap: a leaf,
// a view, a cast, or what is there before the run.
TEST(pattern, a_node_with_another_use_is_matched_if_it_is_cheap) {
  Pattern x = any();
  struct Case {
    const char* body;
    Op op;
    bool is_matched;
  };
  for (auto [body, inner, is_matched] : {
           Case{"x = input f32[n]\n t = neg(x)\n output t", Op::kNeg, false},
           Case{"x = input f16[n]\n t = cast(x) to=f32\n output t", Op::kCast, true},
           Case{"x = input f32[n]\n t = reshape(x) shape=[1,n]\n output t", Op::kReshape, true},
           Case{"x = param f32[4]\n t = neg(x)\n output t", Op::kNeg, true},
           Case{"x = input f32[n]\n i = dim_size(x) axis=0\n f = cast(i) to=f32\n t = neg(f)\n output t", Op::kNeg,
                true},
           Case{"x = input f32[n]\n t = neg(x)\n output x", Op::kNeg, true},
           Case{"x = input f32[n]\n t = neg(x)\n u = sin(t)\n output u", Op::kNeg, false},
       }) {
    Outcome outcome = apply(std::string(body) + "\n y = exp(t)\n output y", op(Op::kExp, {op(inner, {x})}),
                            [=](const Match& m) { return tanh(m[x].builder().wrap(m.in(0).value())); });
    EXPECT_EQ(count(outcome.graph, Op::kTanh), is_matched ? 1u : 0u) << body;
    EXPECT_EQ(outcome.miss.find("has another use") != std::string::npos, !is_matched) << body;
  }
}

// An operand that is absent, and one that the node has not, are none; an output that is not the first is another value.
TEST(pattern, an_op_has_the_operands_that_it_needs_and_gives_its_first_result) {
  Pattern x = any(), low = any(), high = any();
  auto matches = [&](const std::string& body, const Pattern& pattern) {
    return count(apply("x = input f32[2,4]\n u = input f32[4]\n v = input f32[4]\n" + body + "\n y = exp(t)\n output y",
                       op(Op::kExp, {pattern}), [=](const Match& m) { return -m.in(0); })
                     .graph,
                 Op::kNeg) == 1;
  };
  Pattern clamp = op(Op::kClamp, {x, low, high}), norm = op(Op::kLayerNorm, {x, low, high});
  EXPECT_TRUE(matches("t = clamp(x, u, v)", clamp));
  EXPECT_FALSE(matches("t = clamp(x, _, v)", clamp));
  EXPECT_FALSE(matches("t = clamp(x, u)", clamp));
  EXPECT_TRUE(matches("t = clamp(x, u)", op(Op::kClamp, {x, low})));
  EXPECT_TRUE(matches("t, m, s = layer_norm(x, u, v)", norm));
  EXPECT_FALSE(matches("t, m, s = layer_norm(x, u)", norm));
  EXPECT_FALSE(matches("m, t, s = layer_norm(x, u, v)", norm));
  EXPECT_FALSE(matches("m, s, t = layer_norm(x, u, v)", norm));
  EXPECT_TRUE(matches("t = layer_norm(x, u, v) eps=0.001", norm.with("eps", 0.001)));
  EXPECT_FALSE(matches("t = layer_norm(x, u, v) eps=0.0010001", norm.with("eps", 0.001)));
}

// Only where the op commutes may its operands stand the other way round; 0 is not -0; f64 holds far more digits.
TEST(pattern, numbers_and_operands_are_those_of_the_pattern) {
  Pattern x = any(), t = op(Op::kTanh, {x});
  struct Case {
    const char *dtype, *line, *number;
    Pattern pattern;
    bool is_matched;
  };
  for (const Case& it : {Case{"f32", "sub(t, c)", "1", 1.0 - t, false},
                         {"f32", "sub(c, t)", "1", 1.0 - t, true},
                         {"f32", "add(t, c)", "1", 1.0 + t, true},
                         {"f32", "add(c, t)", "1", 1.0 + t, true},
                         {"f32", "add(t, c)", "0", t + 0.0, true},
                         {"f32", "add(t, c)", "-0", t + 0.0, false},
                         {"f32", "add(t, c)", "-0", t + -0.0, true},
                         {"f32", "add(t, c)", "1.0000018", t + 1.0, true},
                         {"f32", "add(t, c)", "1.0000024", t + 1.0, false},
                         {"f32", "add(t, c)", "1.0000018", t + exactly(1), false},
                         {"f32", "add(t, c)", "1", t + exactly(1), true},
                         {"f64", "add(t, c)", "1.000000000000002", t + 1.0, true},
                         {"f64", "add(t, c)", "1.000000000000005", t + 1.0, false},
                         {"f32", "add(t, c)", "7", t + splat(), true},
                         {"f32", "add(t, t)", "7", t + splat(), false}}) {
    std::string body = std::string("x = input ") + it.dtype + "[n]\n t = tanh(x)\n c = constant " + it.dtype + "[] {" +
                       it.number + "}\n z = " + it.line + "\n y = exp(z)\n output y";
    Outcome outcome = apply(body, op(Op::kExp, {it.pattern}), [=](const Match& m) { return -m[x]; });
    EXPECT_EQ(count(outcome.graph, Op::kNeg), it.is_matched ? 1u : 0u) << body;
  }
}

// A cast may stand between, from a half to f32 or back; others change what is computed.
TEST(pattern, a_cast_that_may_be_there_is_between_a_half_and_f32) {
  Pattern x = any(), t = op(Op::kTanh, {x});
  for (auto [from, to, is_matched] : {std::tuple("f16", "f32", true),
                                      {"f32", "bf16", true},
                                      {"f64", "f32", false},
                                      {"f32", "f64", false},
                                      {"f16", "bf16", false},
                                      {"f16", "f64", false}}) {
    std::string body =
        std::string("x = input ") + from + "[n]\n t = tanh(x)\n c = cast(t) to=" + to + "\n y = exp(c)\n output y";
    Outcome outcome = apply(body, op(Op::kExp, {maybe_cast(t)}), [=](const Match& m) { return -m.in(0); });
    EXPECT_EQ(count(outcome.graph, Op::kNeg), is_matched ? 1u : 0u) << body;
  }
}

TEST(pattern, looks_through_at_most_8_views) {
  for (int views : {8, 9}) {
    std::string body = "x = input f32[4,n]\n t = sin(x)\n v0 = transpose(t) perm=[1,0]\n";
    for (int i = 1; i < views; i++)
      body += "v" + std::to_string(i) + " = transpose(v" + std::to_string(i - 1) + ") perm=[1,0]\n";
    body += "y = exp(v" + std::to_string(views - 1) + ")\n output y";
    Pattern x = any();
    Outcome outcome =
        apply(body, op(Op::kExp, {through_views(op(Op::kSin, {x}))}), [=](const Match& m) { return -m.in(0); });
    EXPECT_EQ(count(outcome.graph, Op::kNeg), views == 8 ? 1u : 0u);
  }
}

// A product of 33 factors is taken apart as a whole, of one more only in part.
TEST(pattern, a_product_has_at_most_33_factors) {
  for (int numbers : {32, 33}) {
    std::string body = "x = input f32[n]\n m0 = tanh(x)\n c = constant f32[] {2}\n";
    for (int i = 0; i < numbers; i++) body += "m" + std::to_string(i + 1) + " = mul(m" + std::to_string(i) + ", c)\n";
    body += "y = exp(m" + std::to_string(numbers) + ")\n output y";
    Pattern x = any(), t = op(Op::kTanh, {x});
    Outcome outcome =
        apply(body, op(Op::kExp, {product({t}, std::exp2(numbers))}), [=](const Match& m) { return -m[x]; });
    EXPECT_EQ(count(outcome.graph, Op::kNeg), numbers == 32 ? 1u : 0u);
  }
}

}  // namespace rlx
