// SPDX-License-Identifier: Apache-2.0
#include "passes/graph_copy.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace rlx {

static Graph parsed(const char* text) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

// Bodies whose results have other sizes than declared: [m], where the node around counts on [n].
static Graph with_sizes_of_n(const char* outputs) {
  Graph given = parsed("graph (n, m) {\nx = input f32[n]\ny = input f32[m]\nz = neg(x)\noutput a = z\noutput b = z\n}");
  Graph body =
      parsed((std::string("graph (n, m) {\nx = input f32[n]\ny = input f32[m]\nz = neg(y)\n") + outputs).c_str());
  auto made = with_sizes_of(given, std::move(body));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *std::move(made);
}

TEST(graph_copy, a_node_has_the_declared_sizes_of_its_result) {
  Graph made = with_sizes_of_n("w = exp(y)\noutput a = z\noutput b = w\n}");
  for (const auto& output : made.outputs()) {
    EXPECT_EQ(made.type(output.value).dims[0], Dim::symbol("n"));
    EXPECT_NE(made.node(output.value).op, Op::kReshape);
  }
}

// An input keeps its type, and a node that is two results may not be given that of both.
TEST(graph_copy, an_input_and_a_second_result_are_reshaped) {
  Graph made = with_sizes_of_n("output a = y\noutput b = y\n}");
  EXPECT_EQ(made.type({made.inputs()[1], 0}).dims[0], Dim::symbol("m"));
  for (const auto& output : made.outputs()) {
    EXPECT_EQ(made.type(output.value).dims[0], Dim::symbol("n"));
    EXPECT_EQ(made.node(output.value).op, Op::kReshape);
  }
}

}  // namespace rlx
