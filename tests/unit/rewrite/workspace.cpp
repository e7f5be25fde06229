// SPDX-License-Identifier: Apache-2.0
// What becomes of the replacement that a rule makes: when it is refused, what it is called, and the order of nodes.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "ir/verify.h"
#include "rewrite/rule_set.h"
#include "tests/support/host_ops.h"
#include "tests/support/transforms.h"

namespace rlx {

using namespace patterns;

static Graph parsed(const std::string& body) {
  auto graph = parse("graph {\n" + body + "\n}", op_table(), test::host_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

struct Outcome {
  Graph graph;
  std::vector<std::string> reasons;  // of rules that did not fire
};

static Outcome rewritten(const std::string& body, const RuleSet& rules, RewriteOptions options = {}) {
  RewriteReport report;
  options.report = &report;
  auto graph = rewrite(parsed(body), rules, options);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_TRUE(verify(*graph).ok());
  Outcome outcome{*std::move(graph), {}};
  for (const RewriteReport::Line& line : report.lines)
    if (!line.reason.empty()) outcome.reasons.push_back(line.reason);
  return outcome;
}

static std::vector<Op> ops_of(const Graph& graph) {
  std::vector<Op> ops;
  for (const Node& node : graph.nodes()) ops.push_back(node.op);
  return ops;
}

static RuleSet of_exp(std::function<Expr(const Match&)> apply, Grade grade = exact) {
  RuleSet rules;
  rules.add(grade, "of_exp", {Op::kExp}, std::move(apply));
  return rules;
}

static constexpr char kExp[] = "x = input f32[4]\ny = exp(x)\noutput y";
static constexpr char kExpOfHalves[] = "x = input f16[4]\ny = exp(x)\noutput y";

TEST(workspace, refuses_a_replacement_of_another_type) {
  Outcome other = rewritten(kExp, of_exp([](const Match& m) { return cast(m.in(0), DType::kF64); }));
  EXPECT_TRUE(test::has_op(other.graph, Op::kExp));
  EXPECT_EQ(other.reasons, std::vector<std::string>{"the replacement is f64[4], not f32[4]"});
  other = rewritten(kExp, of_exp([](const Match& m) { return reshape(m.in(0), {2, 2}); }));
  EXPECT_TRUE(test::has_op(other.graph, Op::kExp));
}

// With grade exact, for halves: a composite is rounded once.
TEST(workspace, refuses_a_composite_of_halves_among_exact_rules) {
  auto composite = [](const Match& m) { return m.builder().op(Op::kGelu, {m.in(0)}); };
  auto primitive = [](const Match& m) { return unary(Op::kTanh, m.in(0)); };
  EXPECT_TRUE(test::has_op(rewritten(kExpOfHalves, of_exp(composite), {.math = exact}).graph, Op::kExp));
  EXPECT_FALSE(test::has_op(rewritten(kExpOfHalves, of_exp(composite), {.math = close}).graph, Op::kExp));
  EXPECT_FALSE(test::has_op(rewritten(kExp, of_exp(composite), {.math = exact}).graph, Op::kExp));
  EXPECT_FALSE(test::has_op(rewritten(kExpOfHalves, of_exp(primitive), {.math = exact}).graph, Op::kExp));
}

// The device is asked about composites alone.
TEST(workspace, refuses_what_the_device_refuses) {
  auto refuses = [](const Facts& facts, Value value) {
    return std::string(facts.graph().node(value).op == Op::kRelu ? "" : "no kernel");
  };
  auto of = [&](Op op) {
    return rewritten(kExp, of_exp([=](const Match& m) { return m.builder().op(op, {m.in(0)}); }), {.refuses = refuses});
  };
  EXPECT_EQ(of(Op::kGelu).reasons, std::vector<std::string>{"no kernel"});
  EXPECT_TRUE(test::has_op(of(Op::kGelu).graph, Op::kExp));
  EXPECT_FALSE(test::has_op(of(Op::kRelu).graph, Op::kExp));
  EXPECT_FALSE(test::has_op(of(Op::kTanh).graph, Op::kExp));
  bool asked[3] = {};
  RuleSet asks = of_exp([&](const Match& m) {
    for (size_t i = 0; i < 3; i++)
      asked[i] = m.is_refused(m.builder().op(std::array{Op::kGelu, Op::kRelu, Op::kTanh}[i], {m.in(0)}));
    return Expr();
  });
  rewritten(kExp, asks, {.refuses = refuses});
  EXPECT_TRUE(asked[0] && !asked[1] && !asked[2]);
  rewritten(kExp, asks);
  EXPECT_FALSE(asked[0] || asked[1] || asked[2]);
}

TEST(workspace, leaves_rules_out_by_name_and_by_grade) {
  RuleSet rules = of_exp([](const Match& m) { return unary(Op::kTanh, m.in(0)); }, close);
  EXPECT_FALSE(test::has_op(rewritten(kExp, rules).graph, Op::kExp));
  EXPECT_TRUE(test::has_op(rewritten(kExp, rules, {.math = exact}).graph, Op::kExp));
  EXPECT_TRUE(test::has_op(rewritten(kExp, rules, {.skip = {"other", "of_exp"}}).graph, Op::kExp));
  EXPECT_FALSE(test::has_op(rewritten(kExp, rules, {.skip = {"other"}}).graph, Op::kExp));
}

// A rule that puts a node behind its anchor fires once: then the node is there.
TEST(workspace, sees_that_a_replacement_is_there_already) {
  Outcome once = rewritten(kExp, of_exp([](const Match& m) { return -m.anchor(); }));
  EXPECT_EQ(ops_of(once.graph), (std::vector{Op::kInput, Op::kExp, Op::kNeg}));
  EXPECT_TRUE(once.reasons.empty());
}

// The new node has the name of the old one, but a name of its own stays.
TEST(workspace, names_the_replacement) {
  auto made = rewritten(kExp, of_exp([](const Match& m) { return unary(Op::kTanh, m.in(0)); })).graph;
  EXPECT_EQ(made.node(made.outputs()[0].value).name, "y");
  made = rewritten("x = input f32[4]\nt = tanh(x)\ny = exp(x)\noutput y\noutput t",
                   of_exp([](const Match& m) { return unary(Op::kTanh, m.in(0)); }))
             .graph;
  EXPECT_EQ(made.node(made.outputs()[0].value).name, "t");
}

// The replacement of the first node reads the second effect, whose place moves to the front with it.
TEST(workspace, keeps_effects_in_their_order) {
  Outcome outcome = rewritten(R"(
    x = input f32[4]
    y = exp(x)
    a = host_effect(x) name="test.scale" by=2.0
    b = host_effect(x) name="test.scale" by=3.0
    c = host_effect(x) name="test.scale" by=4.0
    z = neg(b)
    output y
    output z)",
                              of_exp([](const Match& m) {
                                return unary(Op::kTanh, m.builder().wrap(Value{3, 0}));
                              }));
  std::vector<std::string> names;
  for (const Node& node : outcome.graph.nodes())
    if (node.op == Op::kHostEffect) names.push_back(node.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_FALSE(test::has_op(outcome.graph, Op::kExp));
}

// Only what is pure and read by nobody goes.
TEST(workspace, drops_what_nothing_reads) {
  Outcome outcome = rewritten(R"(
    x = input f32[4]
    y = exp(x)
    idle = sin(x)
    below = cos(x)
    above = neg(below)
    said = host_effect(x) name="test.scale" by=2.0
    output y)",
                              of_exp([](const Match& m) { return unary(Op::kTanh, m.in(0)); }));
  std::vector<Op> ops = ops_of(outcome.graph);
  std::ranges::sort(ops);
  std::vector<Op> wanted{Op::kInput, Op::kTanh, Op::kHostEffect};
  std::ranges::sort(wanted);
  EXPECT_EQ(ops, wanted);
}

// A match that asks for the last use of a value: other readers, or an output, keep it.
TEST(workspace, knows_who_reads_a_value) {
  for (auto [more, is_taken] : {std::pair("", true),
                                {"output b", false},
                                {"c = sin(b)\noutput c", false},
                                {"c = sin(b)\nd = cos(x)\noutput d", true}}) {
    bool taken = false;
    rewritten(std::string("x = input f32[4]\nb = neg(x)\ny = exp(b)\noutput y\n") + more, of_exp([&](const Match& m) {
                taken = m.take(m.in(0));
                return Expr();
              }));
    EXPECT_EQ(taken, is_taken) << more;
  }
}

}  // namespace rlx
