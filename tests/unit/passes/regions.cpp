// SPDX-License-Identifier: Apache-2.0
// The bodies of elementwise regions: equal ones are one.
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
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

}  // namespace rlx
