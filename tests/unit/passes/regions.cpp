// SPDX-License-Identifier: Apache-2.0
// The bodies of elementwise regions: equal ones are one.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "support/transforms.h"

namespace rlx {

// The bodies of the regions that these statements become, in order. Each region ends in a softmax, so none joins
// another.
static std::vector<const Graph*> bodies(const std::string& statements) {
  static std::vector<Graph> made;  // keeps the bodies
  auto graph = parse(R"(graph "g" (n, m) {
  x = input f32[n]
  y = input f32[n]
  z = input f32[m]
  half = constant f32[] {0.5}
  third = constant f32[] {0.25}
)" + statements + "}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  made.push_back(*test::find_transform("regions")->run(*graph));
  EXPECT_TRUE(verify(made.back()).ok());
  std::vector<const Graph*> bodies;
  for (const Node& node : made.back().nodes())
    if (node.op == Op::kElementwiseRegion) bodies.push_back(node.attrs.graph("body").get());
  return bodies;
}

TEST(regions, that_compute_the_same_share_a_body) {
  auto of = bodies(R"(
  a1 = mul(x, half)
  a2 = sub(a1, y)
  a3 = softmax(a2)
  b1 = mul(a3, half)
  b2 = sub(b1, y)
  b3 = softmax(b2)
  output o = b3
)");
  ASSERT_EQ(of.size(), 2u);
  EXPECT_EQ(of[0], of[1]);
}

TEST(regions, that_differ_have_bodies_of_their_own) {
  auto of = bodies(R"(
  a1 = mul(x, half)
  a2 = sub(a1, y)
  b1 = mul(x, third)
  b2 = sub(b1, y)
  c1 = mul(x, half)
  c2 = sub(y, c1)
  d1 = mul(z, half)
  d2 = sub(d1, z)
  e1 = mul(x, half)
  e2 = sub(e1, x)
  f1 = mul(x, half)
  f2 = add(f1, y)
  g1 = cast(x) to=f16
  g2 = cast(g1) to=f32
  h1 = cast(x) to=bf16
  h2 = cast(h1) to=f32
  output a = a2
  output b = b2
  output c = c2
  output d = d2
  output e = e2
  output f = f2
  output g = g2
  output h = h2
)");
  ASSERT_EQ(of.size(), 8u);
  for (size_t i = 0; i < of.size(); i++)
    for (size_t k = 0; k < i; k++) EXPECT_NE(of[i], of[k]) << i << " and " << k;
}

// The device refuses regions with a sine. Their nodes stay, in their places, and regions before and after them are
// made.
TEST(regions, that_the_device_refuses_stay_nodes) {
  auto graph = *parse(R"(graph "g" () {
  x = input f32[4]
  a = exp(x)
  b = neg(a)
  c = softmax(b)
  d = sin(c)
  e = neg(d)
  f = softmax(e)
  g = exp(f)
  h = neg(g)
  output e
  output h
})");
  RewriteReport report;
  PassContext context;
  context.report = &report;
  context.refuses = [](const Facts& facts, Value value) {
    const Node& node = facts.graph().node(value);
    bool has_sine = node.op == Op::kElementwiseRegion && test::has_op(*node.attrs.graph("body"), Op::kSin);
    return std::string(has_sine ? "no sine" : "");
  };
  auto made = group_elementwise(graph, context);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(verify(*made).ok());
  std::vector<Op> ops;
  for (const Node& node : made->nodes()) ops.push_back(node.op);
  EXPECT_EQ(ops, (std::vector{Op::kInput, Op::kElementwiseRegion, Op::kSoftmax, Op::kSin, Op::kNeg, Op::kSoftmax,
                              Op::kElementwiseRegion}));
  EXPECT_EQ(made->describe(made->outputs()[0].value.node), "neg 'e' (%4)");
  ASSERT_EQ(report.lines.size(), 2u);
  EXPECT_EQ(report.lines[0].where, "neg 'b' (%2), 2 ops");
  EXPECT_EQ(report.lines[1].where, "neg 'h' (%8), 2 ops");
}

// Only what may join does, whatever else the device has kernels for. Without a device there is nothing to do.
TEST(regions, have_the_nodes_that_may_join) {
  auto graph = *parse(R"(graph "g" () {
  x = input f32[4]
  a = exp(x)
  b = sin(a)
  c = neg(b)
  d = abs(c)
  output d
})");
  PassContext context;
  auto is_no_sine = [](const Facts& facts, Value value) { return facts.graph().node(value).op != Op::kSin; };
  EXPECT_FALSE(may_group(graph, context));
  EXPECT_EQ(print(*group_elementwise(graph, context)), print(graph));
  context.refuses = [](const Facts&, Value) { return std::string(); };
  EXPECT_TRUE(may_group(graph, context));
  for (bool joins : {false, true}) {
    context.is_native = context.joins_regions = nullptr;
    (joins ? context.joins_regions : context.is_native) = is_no_sine;
    if (joins) context.is_native = [](const Facts&, Value) { return true; };
    auto made = group_elementwise(graph, context);
    ASSERT_TRUE(made.ok()) << made.status().message();
    std::vector<Op> ops;
    for (const Node& node : made->nodes()) ops.push_back(node.op);
    EXPECT_EQ(ops, (std::vector{Op::kInput, Op::kExp, Op::kSin, Op::kElementwiseRegion})) << joins;
  }
}

}  // namespace rlx
