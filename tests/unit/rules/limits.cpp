// SPDX-License-Identifier: Apache-2.0
// How many readers of a value a rule looks at.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "tests/support/transforms.h"

namespace rlx {

static size_t count_of(Op op, const char* pass, const std::string& nodes) {
  auto graph = parse("graph {\n" + nodes + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto made = test::find_transform(pass)->run(*graph);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return static_cast<size_t>(std::ranges::count(made->nodes(), op, &Node::op));
}

TEST(limits, products_are_joined_where_fewer_than_1024_nodes_read_their_operand) {
  auto joined_of = [](int readers) {
    std::string nodes = "x = input f32[2,3]\nv = param f32[3,1]\nw = param f32[3,1]\n";
    nodes += "a = linear(x, v)\nb = linear(x, w)\noutput a\noutput b\n";
    for (int i = 2; i < readers; i++) nodes += format("y{} = leaky_relu(x) alpha={}\noutput y{}\n", i, i, i);
    return count_of(Op::kLinear, "merge-siblings", nodes);
  };
  EXPECT_EQ(joined_of(1023), 1u);
  EXPECT_EQ(joined_of(1024), 2u);
}

TEST(limits, a_quotient_becomes_a_product_where_fewer_than_1024_nodes_read_it) {
  auto quotients_of = [](int readers) {
    std::string nodes = "x = input f32[2,3]\nk = constant f32[] {3}\nq = div(x, k)\n";
    for (int i = 0; i < readers; i++)
      nodes += format("w{} = param f32[3,1]\ny{} = matmul(q, w{})\noutput y{}\n", i, i, i, i);
    return count_of(Op::kDiv, "canonicalize", nodes);
  };
  EXPECT_EQ(quotients_of(1023), 0u);
  EXPECT_EQ(quotients_of(1024), 1u);
}

}  // namespace rlx
