// SPDX-License-Identifier: Apache-2.0
// What rules ask of constants and of values with many readers, and how equal nodes are found. Work is counted, not
// time.
#include "ir/text.h"
#include "rewrite/known_nodes.h"
#include "rewrite/rule_set.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

static int looks = 0;
static std::optional<double> first_element(const Tensor& tensor) {
  looks++;
  return element_as_f64(tensor, 0);
}

TEST(work, a_constant_is_read_once_for_all_rules_that_ask) {
  RuleSet rules;
  std::vector<std::optional<double>> found;
  rules.add(exact, "asks", {Op::kExp, Op::kTanh, Op::kSin}, [&](const Match& m) {
    found.push_back(m.found_in(m.in(0), first_element));
    return Expr();
  });
  looks = 0;
  auto graph = rewrite(*parse(R"(graph {
    x = input f32[2]
    c = constant f32[2] {5, 6}
    a = exp(c)
    b = tanh(c)
    d = sin(c)
    e = exp(x)
    output a
    output b
    output d
    output e
  })"),
                       rules, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(found, (std::vector<std::optional<double>>{5, 5, 5, std::nullopt}));
  EXPECT_EQ(looks, 1);
}

// The number of the node that a rule has made and taken back is another one's later.
TEST(work, what_was_found_in_a_constant_goes_with_it) {
  RuleSet rules;
  std::vector<std::optional<double>> found;
  rules.add(exact, "asks", {Op::kExp, Op::kTanh}, [&](const Match& m) {
    Expr made = m.builder().scalar(DType::kF32, m.is(m.anchor(), Op::kExp) ? 3 : 4);
    found.push_back(m.found_in(made, first_element));
    return Expr();
  });
  auto graph =
      rewrite(*parse("graph {\n x = input f32[2]\n y = exp(x)\n z = tanh(x)\n output y\n output z\n}"), rules, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(found, (std::vector<std::optional<double>>{3, 4}));
}

// Operands that all flow into one value, which has as many readers.
static Graph many_into_one(int count, Expr (*operand)(Expr)) {
  Graph graph;
  Builder b(graph);
  std::vector<Expr> operands;
  for (int i = 0; i < count; i++) operands.push_back(operand(input(b, ("x" + std::to_string(i)).c_str(), {8})));
  Expr all = concat(operands, 0), other = input(b, "other", {1});
  for (int i = 0; i < count; i++) output(b, ("y" + std::to_string(i)).c_str(), all * (other + static_cast<double>(i)));
  return graph;
}

TEST(work, readers_are_followed_in_proportion_to_the_graph) {
  auto quotient = [](Expr x) { return x / 41.0; };
  Graph many = many_into_one(900, quotient), few = many_into_one(8, quotient);
  RewriteReport report;
  auto made = test::find_transform("canonicalize")->run(many, Bounds::kError, &report);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_LT(report.visits, 100 * many.nodes().size());
  made = test::find_transform("canonicalize")->run(few);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(test::has_op(*made, Op::kDiv)) << "there is no step";
}

TEST(work, changes_below_one_node_are_told_to_its_readers_once) {
  auto flipped_twice = [](Expr x) {
    NamedAttrs axes{{"axes", std::vector<int64_t>{0}}};
    return x.builder().op(Op::kFlip, {x.builder().op(Op::kFlip, {x}, axes)}, axes);
  };
  Graph graph = many_into_one(900, flipped_twice);
  RewriteReport report;
  auto made = test::find_transform("canonicalize")->run(graph, Bounds::kError, &report);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(test::has_op(*made, Op::kFlip));
  EXPECT_LT(report.visits, 10 * graph.nodes().size());
}

// Each value loses a reader after the loop has passed the node that all of them flow into, and the readers of that.
TEST(work, changes_behind_one_node_are_told_to_its_readers_once) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {4}), one = b.scalar(DType::kF32, 1);
  std::vector<Expr> values, products;
  for (int i = 0; i < 500; i++) values.push_back(unary(Op::kSin, x * (i + 2.5)));
  Expr all = concat(values, 0);
  for (int i = 0; i < 2000; i++) output(b, ("y" + std::to_string(i)).c_str(), slice(all + (i + 2.25), 0, 0, 1));
  for (Expr value : values) products.push_back(unary(Op::kCos, value * one));
  output(b, "z", concat(products, 0));
  RewriteReport report;
  auto made = test::find_transform("canonicalize")->run(graph, Bounds::kError, &report);
  ASSERT_TRUE(made.ok()) << made.status().message();
  auto has_no_rest = [](const RewriteReport::Line& line) { return line.reason == kOutOfBudget; };
  EXPECT_TRUE(std::ranges::none_of(report.lines, has_no_rest));
  EXPECT_LT(report.visits, 10 * graph.nodes().size());
}

// The slots of a table with open addressing that are looked at for each node, where node i reads the nodes i * step and
// i * step + distance. Graphs are as regular, and their nodes must not pile up.
static double probes(Op op, uint32_t step, uint32_t distance) {
  constexpr uint32_t kNodes = 20000, kSlots = 1 << 16;
  std::vector<bool> taken(kSlots);
  const OpInfo& info = op_table().info(op);
  size_t looks = 0;
  for (uint32_t i = 0; i < kNodes; i++) {
    std::array in{Value{i * step, 0}, Value{i * step + distance, 0}};
    size_t at = KnownNodes::hash_of(info, in, {}) % kSlots;
    for (looks++; taken[at]; looks++) at = (at + 1) % kSlots;
    taken[at] = true;
  }
  return static_cast<double>(looks) / kNodes;
}

TEST(work, nodes_of_regular_graphs_are_spread_over_the_table) {
  for (Op op : {Op::kAdd, Op::kSub})
    for (uint32_t step : {1, 2, 3, 7})
      for (uint32_t distance : {0, 1, 2, 3, 4, 8, 16, 32, 100, 128})
        EXPECT_LT(probes(op, step, distance), 2) << "step " << step << ", distance " << distance;
}

}  // namespace rlx
