// SPDX-License-Identifier: Apache-2.0
// How much moves into bodies.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "tests/support/transforms.h"

namespace rlx {

// Branches read the end of a chain of 30 nodes. If it sank into each of them, the graph would become many times as
// large. In the second graph the chains that sink make up four times the graph to the node; in the first, one node is
// missing.
TEST(sink, copies_at_most_four_times_the_graph) {
  constexpr int kChain = 30;
  for (int branches : {21, 29}) {
    const std::string inputs = "graph {\nu = input f32[4]\nr = input f32[4]\n";
    std::string text = "graph {\nx0 = input f32[4]\nb = input bool[]\nr0 = param f32[4]\n";
    for (int i = 0; i < kChain; i++) text += format("r{} = sin(r{})\n", i + 1, i);
    for (int i = 0; i < branches; i++)
      text += format("x{} = if(b, x{}, r{}) then=", i + 1, i, kChain) + inputs +
              "v = add(u, r)\noutput v\n} else=" + inputs + "v = mul(u, r)\noutput v\n}\n";
    auto graph = parse(text + format("output x{}\n", branches) + "}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto made = test::find_transform("sink")->run(*graph, Bounds::kError, nullptr);
    ASSERT_TRUE(made.ok()) << made.status().message();
    auto sank = [](const Node& node) { return node.op == Op::kIf && node.in.size() == 2; };
    size_t sunk = static_cast<size_t>(std::ranges::count_if(made->nodes(), sank));
    EXPECT_EQ(sunk, 4 * graph->nodes().size() / (kChain + 1)) << branches;
  }
}

}  // namespace rlx
