// SPDX-License-Identifier: Apache-2.0
// Values with many uses and nodes with many outputs: a Workspace keeps its uses by value.
#include <ctime>

#include "compile/compile.h"
#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// Quotients whose product with a number becomes an integer that is an output so many times.
static std::string text_of_many_uses(int count) {
  std::string text = "graph {\nx = input f32[4]\n", all, outputs;
  for (int i = 0; i < count; i++) {
    text += format("k{} = constant f32[] ", i) + "{" + std::to_string(i + 2) + ".5}\n" +
            format("q{} = div(x, k{})\n", i, i);
    all += format("{}q{}", i ? ", " : "", i);
    outputs += format("output o{} = b\n", i);
  }
  return text + "y = concat(" + all + ") axis=0\nb = cast(y) to=i32\n" + outputs + "}";
}

static std::string text_of_many_parts(int count) {
  std::string text = "graph {\nk = constant f32[] {3}\n" + format("x = input f32[{},4]\n", count), parts, uses;
  for (int i = 0; i < count; i++) {
    parts += format("{}q{}", i ? ", " : "", i);
    uses += format("e{} = div(q{}, k)\noutput e{}\noutput q{}\n", i, i, i, i);
  }
  return text + parts + format(" = split(x) parts={} axis=0\n", count) + uses + "}";
}

static double seconds_to_compile(const std::string& text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto env = env_with(1);
  std::clock_t begin = std::clock();
  auto compiled = compile(*graph, **env->find_device("cpu"), {});
  EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(many_uses, a_use_costs_the_same_however_many_there_are) {
  double few = seconds_to_compile(text_of_many_uses(1000)), many = seconds_to_compile(text_of_many_uses(16000));
  std::printf("uses: %.1f ms for 1,000, %.1f ms for 16,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 16 * 3 * few + 0.05);
}

TEST(many_uses, an_output_costs_the_same_however_many_there_are) {
  double few = seconds_to_compile(text_of_many_parts(2000)), many = seconds_to_compile(text_of_many_parts(64000));
  std::printf("parts: %.1f ms for 2,000, %.1f ms for 64,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 32 * 3 * few + 0.05);
}

}  // namespace rlx
