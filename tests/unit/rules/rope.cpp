// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ir/text.h"
#include "rules/rules.h"

namespace rlx {

// x * C + rotate_half(x) * S, where both tables are the last of a chain of sines over pairs of equal numbers.
static Graph rotated_by_sines(int count) {
  std::string text = R"(graph "g" {
    x = input f32[1,2,3,8]
    a = input f32[1,1,3,4]
    t0 = concat(a, a) axis=3
)";
  for (int i = 0; i < count; i++) text += "t" + std::to_string(i + 1) + " = sin(t" + std::to_string(i) + ")\n";
  std::string last = "t" + std::to_string(count);
  text += R"(h = slice(x) starts=[0] ends=[4] axes=[3]
    k = slice(x) starts=[4] ends=[8] axes=[3]
    b = neg(k)
    r = concat(b, h) axis=3
    u = mul(x, )" +
          last + ")\nv = mul(r, " + last + ")\ny = add(u, v)\noutput y\n}\n";
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return *std::move(graph);
}

static Op op_of_result(int sines) {
  static const RuleSet kRules{add_view_rules, add_rope_rules};
  auto graph = rewrite(rotated_by_sines(sines), kRules, {});
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  return graph->node(graph->outputs()[0].value).op;
}

TEST(rope, finds_the_pairs_of_its_tables) {
  EXPECT_EQ(op_of_result(0), Op::kRope);
  EXPECT_EQ(op_of_result(8), Op::kRope);
}

// In a table of i64 the numbers of a pair look equal as f64; a cast above tells them apart.
TEST(rope, compares_the_bytes_of_a_pair) {
  for (const char* second : {"9007199254740992", "9007199254740993"}) {
    std::string pair = format("9007199254740992, {}", second), table = format("{}, {}", pair, pair);
    auto graph = parse(R"(graph "g" {
      x = input f32[1,2,2,2]
      p = input i32[2]
      t = constant i64[2,2] {)" +
                       table + R"(}
      g = gather(t, p) axis=0
      w = cast(g) to=i32
      c = cast(w) to=f32
      s = neg(c)
      a = slice(x) starts=[0] ends=[1] axes=[3]
      b = slice(x) starts=[1] ends=[2] axes=[3]
      n = neg(b)
      r = concat(n, a) axis=3
      u = mul(r, s)
      v = mul(x, c)
      y = add(v, u)
      output y
    })");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    static const RuleSet kRules{add_view_rules, add_rope_rules};
    auto made = rewrite(*std::move(graph), kRules, {});
    ASSERT_TRUE(made.ok()) << made.status().message();
    bool is_rope = made->node(made->outputs()[0].value).op == Op::kRope;
    EXPECT_EQ(is_rope, std::string_view(second).ends_with('2')) << second;
  }
}

// Nothing recurses by the depth of a graph.
TEST(rope, looks_down_no_chain_without_end) {
  EXPECT_EQ(op_of_result(50'000), Op::kAdd);
}

}  // namespace rlx
