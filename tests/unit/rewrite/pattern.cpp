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

}  // namespace rlx
