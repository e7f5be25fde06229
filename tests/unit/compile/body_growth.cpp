// SPDX-License-Identifier: Apache-2.0
// What bodies of control flow cost a compile.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "compile/compile.h"
#include "ir/text.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// Scans, one in the other. The innermost one has 2,000 products.
static double seconds_of_nested_loops(int depth) {
  const std::string inputs = "a = input f32[2,2]\nw = input f32[2,2]\n";
  std::string text = "graph {\n" + inputs, end, from = "a";
  for (int i = 0; i < depth; i++) {
    text += "y, v = scan(a, w) n_carry=2 n_xs=0 length=1 body=graph {\n" + inputs;
    end += "output u = w\n}\noutput y\n";
  }
  for (int i = 0; i < 2000; i++) {
    text += format("m{} = matmul({}, w)\n", i, from);
    from = format("m{}", i);
  }
  auto graph = parse(text + "output " + from + "\n" + end + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return 0;
  auto env = env_with(1);
  std::clock_t begin = std::clock();
  EXPECT_TRUE(compile(*graph, **env->find_device("cpu"), {}).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// A pass that has nothing to do in a body is asked about it once, not once for each graph around it.
TEST(body_growth, a_deep_body_costs_as_much_as_one_that_is_not) {
  double flat = seconds_of_nested_loops(2), deep = seconds_of_nested_loops(60);
  std::printf("nested loops: %.1f ms for 2, %.1f ms for 60\n", flat * 1e3, deep * 1e3);
  EXPECT_LT(deep, 3 * flat + 0.02);
}

// Each condition is known once the branch before it is a part of the graph.
static double visits_a_node(int count) {
  std::string text = "graph {\nx0 = input f32[4]\nb = input bool[]\np = param f32[4]\n";
  for (int i = 0; i < count; i++)
    text += (i == 0 ? "c0 = constant bool[] {0}\n" : format("c{} = bit_and(b, r{})\n", i, i)) +
            format("x{}, r{} = if(c{}, x{}, b) ", i + 1, i + 1, i, i) +
            "then=graph {\nu = input f32[4]\nq = input bool[]\nv = sin(u)\noutput v\noutput q\n} else=graph {\n"
            "u = input f32[4]\nq = input bool[]\np = param f32[4]\nf = constant bool[] {0}\nv = add(u, p)\n"
            "output v\noutput f\n}\n";
  auto graph = parse(text + format("output x{}\n", count) + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  RewriteReport report;
  auto made = test::find_transform("branches")->run(*graph, Bounds::kError, &report);
  EXPECT_TRUE(made.ok()) << made.status().message();
  EXPECT_FALSE(test::has_op(*made, Op::kIf));
  return static_cast<double>(report.visits) / static_cast<double>(graph->nodes().size());
}

// Each of 40 branches decides the next, and has a guard that the graph around it lacks: the rule leaves them to rounds
// over the graph.
static bool are_all_decided(int nodes_a_branch) {
  std::string text = "graph (n) {\nx0 = input f32[n]\nb = input bool[]\nc0 = constant bool[] {1}\n";
  const std::string inputs = "graph {\nu = input f32[n]\nq = input bool[]\n";
  std::string other = "v0 = cos(u)\n";
  for (int i = 0; i < nodes_a_branch; i++) other += format("v{} = sin(v{})\n", i + 1, i);
  other += format("output v{}\noutput q\n", nodes_a_branch) + "}\n";
  for (int i = 0; i < 40; i++)
    text += format("x{}, r{} = if(c{}, x{}, b) then=", i + 1, i + 1, i, i) + inputs +
            format("v = slice(u) starts=[n-{}] ends=[n] axes=[0]\n", i + 1) +
            "s = reduce(v) fn=sum\nw = add(u, s)\nt = constant bool[] {1}\noutput w\noutput t\n} else=" + inputs +
            other + format("c{} = bit_or(b, r{})\n", i + 1, i + 1);
  auto graph = parse(text + "output x40\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  RewriteReport report;
  auto made = test::find_transform("branches")->run(*graph, Bounds::kError, &report);
  EXPECT_TRUE(made.ok()) << made.status().message();
  bool are_all = !test::has_op(*made, Op::kIf);
  auto is_about_the_pass = [](const RewriteReport::Line& line) { return line.rule.empty(); };
  EXPECT_EQ(std::ranges::none_of(report.lines, is_about_the_pass), are_all) << "the report tells of what is left";
  return are_all;
}

// A round over few nodes is cheap, whatever the number of rounds. The nodes of branches count: each round walks them
// too.
TEST(body_growth, rounds_over_many_nodes_of_branches_come_to_an_end) {
  EXPECT_TRUE(are_all_decided(1));
  EXPECT_FALSE(are_all_decided(1000));
}

TEST(body_growth, branches_with_params_that_decide_each_other_are_inlined_in_one_walk) {
  EXPECT_LT(visits_a_node(200), 1.3 * visits_a_node(20) + 1);
}

}  // namespace rlx
