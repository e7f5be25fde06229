// SPDX-License-Identifier: Apache-2.0
// What the sizes that control flow decides cost where a graph is read, printed, verified and rid of dead nodes: it
// grows as their number does.
#include <ctime>

#include "ir/text.h"
#include "ir/verify.h"
#include "op_test.h"

namespace rlx::test {
namespace {

std::string lines(int count, std::string_view line) {
  std::string text;
  for (int i = 0; i < count; i++) {
    for (char c : line) text += c == '#' ? std::to_string(i) : std::string(1, c);
    text += "\n";
  }
  return text;
}

std::string list(int count, std::string_view item) {
  std::string text = lines(count, item);
  text.pop_back();
  std::ranges::replace(text, '\n', ',');
  return text;
}

// A loop whose carries have sizes of their own, which each trip changes.
std::string loop_of(int count) {
  return "graph (" + list(count, "m# in [0, 9]") + ") {\n" + lines(count, "x# = input f32[m#]") + list(count, "y#") +
         " = scan(" + list(count, "x#") + format(") n_carry={} n_xs=0 length=2 body=graph (", count) +
         list(count, "c# in [0, 30]") + ") {\n" + lines(count, "a# = input f32[c#]") +
         lines(count, "b# = pad(a#) lo=[1] hi=[0]") + lines(count, "output b#") + "}\n" + lines(count, "output y#") +
         "}";
}

// Branches that both decide sizes.
std::string branches_of(int count) {
  auto branch = [&](const std::string& symbol) {
    return "graph {\ni = input i64[" + std::to_string(count) + "]\n" +
           lines(count, "j# = slice(i) starts=[#] ends=[# + 1]") + lines(count, "k# = reshape(j#) shape=[]") +
           lines(count, "d# = dynamic_iota(k#) max=100 symbol=" + symbol) + lines(count, "output d#") + "}";
  };
  return "graph {\np = input bool[]\ni = input i64[" + std::to_string(count) + "]\n" + list(count, "y#") +
         " = if(p, i) then=" + branch("t#") + " else=" + branch("e#") + "\n" + lines(count, "output y#") + "}";
}

double seconds_for(const std::string& text) {
  std::clock_t begin = std::clock();
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return 0;
  EXPECT_TRUE(verify(*graph).ok());
  EXPECT_FALSE(print(*graph).empty());
  EXPECT_EQ(drop_dead(*graph).nodes().size(), graph->nodes().size());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

}  // namespace

TEST(control, sizes_that_loops_and_branches_decide_cost_linear_time) {
  for (auto [name, text_of] : {std::pair{"carries", &loop_of}, {"branches", &branches_of}}) {
    double few = seconds_for(text_of(300)), many = seconds_for(text_of(3000));
    std::printf("%s: %.1f ms for 300 sizes, %.1f ms for 3,000\n", name, few * 1e3, many * 1e3);
    EXPECT_LT(many, 10 * 2 * few + 0.05) << name;
  }
}

}  // namespace rlx::test
