// SPDX-License-Identifier: Apache-2.0
// What graphs of long and nested sizes cost grows as the sizes do.
#include <gtest/gtest.h>

#include <ctime>

#include "compile/compile.h"
#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// Slices of open sizes that are joined; what is added to them, and cut from the sum, asks how their sum compares.
static double seconds_of_sums_of_extremes(int count) {
  std::string text = "graph {\n", joined;
  for (int i = 0; i < count; i++) {
    text += format("x{} = input f32[a{}]\ny{} = slice(x{}) starts=[0] ends=[b{}] axes=[0]\n", i, i, i, i, i);
    joined += format("{}y{}", i ? ", " : "", i);
  }
  text += "c = concat(" + joined + ") axis=0\n";
  for (int i = 0; i < 12; i++)
    text +=
        format("z{} = input f32[t{}]\nd{} = add(c, z{})\ne{} = slice(d{}) starts=[1] ends=[t{}] axes=[0]\noutput e{}\n",
               i, i, i, i, i, i, (i + 1) % 12, i);
  auto env = env_with(1);
  std::clock_t begin = std::clock();
  auto graph = parse(text + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return 0;
  EXPECT_TRUE(compile(*graph, **env->find_device("cpu"), {}).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(size_growth, sizes_that_are_sums_of_extremes_are_compared_in_linear_time) {
  double few = seconds_of_sums_of_extremes(30), many = seconds_of_sums_of_extremes(300);
  std::printf("sums of min: %.1f ms for 30 terms, %.1f ms for 300\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 10 * 2.5 * few + 0.05);
}

// A slice to an end of its own, of the one before, to which an input may be joined. Every size nests those before it.
static double seconds_of_nested_sizes(int count, bool joins) {
  std::string text = "graph {\nx0 = input f32[s0]\nv0 = neg(x0)\n";
  for (int i = 1; i <= count; i++) {
    text += format("x{} = input f32[s{}]\nw{} = slice(v{}) starts=[{}] ends=[s{}]\n", i, i, i, i - 1, joins ? 1 : 0, i);
    text += joins ? format("v{} = concat(w{}, x{}) axis=0\n", i, i, i) : format("v{} = neg(w{})\n", i, i);
  }
  text += format("output v{}\n", count) + "}";
  std::clock_t begin = std::clock();
  EXPECT_TRUE(parse(text).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// A size of n parts is read n times, so quadratic is the least.
TEST(size_growth, nested_sizes_are_read_in_quadratic_time) {
  for (bool joins : {false, true}) {
    double few = seconds_of_nested_sizes(30, joins), many = seconds_of_nested_sizes(120, joins);
    std::printf("nested %s: %.1f ms for 30, %.1f ms for 120\n", joins ? "sums" : "min", few * 1e3, many * 1e3);
    EXPECT_LT(many, 4 * 4 * 2 * few + 0.05);
  }
}

static double seconds_of_questions(int guards) {
  Graph graph;
  for (int i = 0; i < guards; i++)
    EXPECT_TRUE(graph.add_guard({Guard::kEqual, Dim::symbol(format("a{}", i)), Dim::symbol(format("b{}", i))}).ok());
  Dim n = Dim::symbol("n"), least = min(n, Dim::symbol("m"));
  std::clock_t begin = std::clock();
  for (int i = 0; i < 1000; i++) {
    EXPECT_TRUE(graph.implies(Guard::kLessEqual, least, n + i));
    EXPECT_EQ(graph.resolved(least), least);
  }
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// A question costs no more where there are many guards that have nothing to do with it.
TEST(size_growth, a_question_about_sizes_does_not_read_all_guards) {
  double few = seconds_of_questions(100), many = seconds_of_questions(10000);
  std::printf("questions: %.1f ms beside 100 guards, %.1f ms beside 10,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 4 * few + 0.02);
}

// Each asks whether its condition follows from sizes.
static std::string text_of_conditions(int count) {
  std::string text = "graph {\nx0 = input f32[n]\nd0 = dim_size(x0) axis=0\n";
  for (int i = 0; i < count; i++)
    text += format("k{} = constant i64[] ", i) + "{3}\n" +
            format("d{} = add(d{}, k{})\nc{} = lt(k{}, d{})\n", i + 1, i, i, i, i, i + 1) +
            format("x{} = if(c{}, x{})", i + 1, i, i) +
            " then=graph {\na = input f32[n]\nb = neg(a)\noutput b\n} else=graph {\na = input f32[n]\noutput a\n}\n";
  return text + format("output x{}\n", count) + "}";
}

static double seconds_of_conditions(int count) {
  std::string text = text_of_conditions(count);
  std::clock_t begin = std::clock();
  EXPECT_TRUE(parse(text).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(size_growth, conditions_of_long_chains_take_linear_time) {
  double few = seconds_of_conditions(400), many = seconds_of_conditions(3200);
  std::printf("conditions: %.1f ms for 400, %.1f ms for 3,200\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 8 * 2.5 * few + 0.05);
}

// The price of that: of a long chain, the condition counts as one of the run (semantics.md S9).
TEST(size_growth, a_condition_follows_from_sizes_if_few_values_decide_it) {
  auto graph = parse(text_of_conditions(300));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::vector<bool> follows;
  for (const Node& node : graph->nodes())
    if (node.op == Op::kIf) follows.push_back(node.attrs.has("when"));
  ASSERT_EQ(follows.size(), 300u);
  EXPECT_TRUE(std::all_of(follows.begin(), follows.begin() + 100, [](bool it) { return it; }));
  EXPECT_FALSE(follows.back());
}

// A memory of the last 16 rows, for each layer, to which the rows of this call are added.
static Graph graph_of_memories(int layers) {
  Graph graph;
  Builder b(graph);
  Expr x = input(b, "x", {Dim::symbol("s"), 4}), memory = input(b, "m", {Dim::symbol("t"), 4});
  for (int i = 0; i < layers; i++) {
    memory = slice(concat(std::array{memory, x}, 0), 0, -16, INT64_MAX);
    x = x + reduce(memory, "sum", {0}, KeepDims::kYes);
  }
  output(b, "y", x);
  EXPECT_TRUE(b.status().ok()) << b.status().message();
  return graph;
}

TEST(size_growth, a_slice_from_the_end_names_the_size_of_its_operand_once) {
  Graph graph = graph_of_memories(40);
  for (const Node& node : graph.nodes())
    if (node.op == Op::kSlice) EXPECT_LE(node.out[0].dims[0].parts(), 3 * 40);
}

TEST(size_growth, slices_from_the_end_compile_in_polynomial_time) {
  auto env = env_with(1);
  double seconds[2];
  for (int i = 0; i < 2; i++) {
    std::clock_t begin = std::clock();
    Graph graph = graph_of_memories(i == 0 ? 8 : 32);
    auto compiled = compile(graph, **env->find_device("cpu"), {});
    ASSERT_TRUE(compiled.ok()) << compiled.status().message();
    seconds[i] = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  }
  std::printf("memories: %.1f ms for 8 layers, %.1f ms for 32\n", seconds[0] * 1e3, seconds[1] * 1e3);
  EXPECT_LT(seconds[1], 4 * 4 * 2 * seconds[0] + 0.05);
}

}  // namespace rlx
