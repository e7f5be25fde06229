// SPDX-License-Identifier: Apache-2.0
// The table that finds equal nodes: it must find each that is there, whatever came and went beside it.
#include "rewrite/known_nodes.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "rewrite/rule_set.h"
#include "tests/support/host_ops.h"

namespace rlx {

static Graph parsed(const std::string& body) {
  auto graph = parse("graph {\n" + body + "\n}", op_table(), test::host_ops());
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

// So many nodes that read one input each.
static Graph of_negs(uint32_t count) {
  std::string body;
  for (uint32_t i = 0; i < count; i++) body += "x" + std::to_string(i) + " = input f32[]\n";
  for (uint32_t i = 0; i < count; i++) body += "y" + std::to_string(i) + " = neg(x" + std::to_string(i) + ")\n";
  return parsed(body + "output y0");
}

static uint32_t find(const KnownNodes& known, const Graph& graph, size_t hash, uint32_t node) {
  const Node& it = graph.node(node);
  return known.find(hash, graph.info(it), it.in, it.attrs);
}

// Their hashes put them side by side at the end of the table of 1024 slots, and so at its beginning.
TEST(known_nodes, stay_where_they_are_found_when_others_go) {
  constexpr uint32_t kCount = 24;
  Graph graph = of_negs(kCount);
  for (size_t spread : {1, 2, 3, 8})
    for (uint32_t step : {2, 3, 5}) {
      KnownNodes known(graph, 0);
      auto hash = [&](uint32_t i) { return 1016 + i / spread; };
      for (uint32_t i = 0; i < kCount; i++) known.insert(hash(i), kCount + i);
      known.erase(hash(3), 0);  // not there
      for (uint32_t gone = 0; gone < kCount; gone += step) {
        known.erase(hash(gone), kCount + gone);
        for (uint32_t i = 0; i < kCount; i++) {
          bool is_there = i % step != 0 || i > gone;
          EXPECT_EQ(find(known, graph, hash(i), kCount + i), is_there ? kCount + i : KnownNodes::kNone)
              << i << " after " << gone << " of " << spread << " and " << step;
        }
      }
    }
}

TEST(known_nodes, are_found_when_the_table_has_grown) {
  constexpr uint32_t kCount = 1100;
  Graph graph = of_negs(kCount);
  KnownNodes known(graph, 0);
  for (uint32_t i = 0; i < kCount; i++) {
    known.insert(size_t{i} * 1024, kCount + i);
    EXPECT_EQ(find(known, graph, 0, kCount), kCount) << i;
    EXPECT_EQ(find(known, graph, size_t{i} * 1024, kCount + i), kCount + i);
  }
}

static bool are_equal(const std::string& body) {
  return has_equal_nodes(parsed("x = input f32[4]\nz = input f32[4]\n" + body));
}

TEST(known_nodes, are_equal_if_they_compute_the_same) {
  EXPECT_TRUE(are_equal("a = exp(x)\nb = exp(x)\noutput a\noutput b"));
  EXPECT_TRUE(are_equal("a = add(x, z)\nb = add(z, x)\noutput a\noutput b"));
  EXPECT_TRUE(
      are_equal("a = iota() shape=[4] axis=0 dtype=f32\nb = iota() shape=[4] axis=0 dtype=f32\noutput a\noutput b"));
  EXPECT_TRUE(are_equal("a = clamp(x, _, z)\nb = clamp(x, _, z)\noutput a\noutput b"));
  EXPECT_FALSE(are_equal("a = exp(x)\nb = exp(z)\noutput a\noutput b"));
  EXPECT_FALSE(are_equal("a = exp(x)\nb = sin(x)\noutput a\noutput b"));
  EXPECT_FALSE(are_equal("a = sub(x, z)\nb = sub(z, x)\noutput a\noutput b"));
  EXPECT_FALSE(are_equal("a = add(x, x)\nb = add(x, z)\nc = add(z, z)\noutput a\noutput b\noutput c"));
  EXPECT_FALSE(are_equal("a = clamp(x, z)\nb = clamp(x, _, z)\noutput a\noutput b"));
  EXPECT_FALSE(are_equal("a = cumulative(x) fn=sum axis=0\nb = cumulative(x) fn=max axis=0\noutput a\noutput b"));
}

// Inputs are values of their own, and a call with an effect is one call.
TEST(known_nodes, are_never_interfaces_or_effects) {
  EXPECT_FALSE(are_equal("output x\noutput z"));
  EXPECT_FALSE(
      are_equal("a = host_effect(x) name=\"test.scale\" by=5.0\nb = host_effect(x) name=\"test.scale\" by=5.0\n"
                "output a\noutput b"));
  EXPECT_TRUE(
      are_equal("a = host_call(x) name=\"test.scale\" by=5.0\nb = host_call(x) name=\"test.scale\" by=5.0\n"
                "output a\noutput b"));
}

}  // namespace rlx
