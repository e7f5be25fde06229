// SPDX-License-Identifier: Apache-2.0
// The message about a graph for which a device has no kernels.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "passes/pass.h"

namespace rlx {

TEST(check_supported, names_every_node_without_a_kernel_and_why) {
  auto graph = parse(R"(
    graph "g" (n) {
      x = input f32[n,4]
      %1 = erf(x)
      %2 = relu(%1)
      %3 = softmax(%2)
      output y = %3
    })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  PassContext context;
  context.refuses = [](const Facts& facts, Value value) {
    const Graph& in = facts.graph();
    return in.node(value).op == Op::kRelu ? std::string()
                                          : "its rows want " + std::string(in.info(in.node(value)).name);
  };
  auto checked = check_supported(*graph, context);
  ASSERT_FALSE(checked.ok());
  EXPECT_EQ(checked.status().code(), Code::kUnsupported);
  EXPECT_EQ(checked.status().message(),
            "2 nodes without a kernel:\n  erf (%1): its rows want erf\n  softmax (%3): its rows want softmax");
  context.refuses = [](const Facts&, Value) { return std::string(); };
  EXPECT_TRUE(check_supported(*graph, context).ok());
}

}  // namespace rlx
