// SPDX-License-Identifier: Apache-2.0
// What each op knows of its result: the number that all elements are, positions that progress evenly, bounds.
#include <gtest/gtest.h>

#include "ir/facts.h"
#include "ir/text.h"

namespace rlx {

// "splat 3, 1 + [0,2], 0..5": of the last value of the graph.
static std::string facts_of(const std::string& nodes) {
  auto graph = parse("graph (n in [2, 9]) {\nx = input f32[n]\n" + nodes + "\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message() << nodes;
  if (!graph.ok()) return "";
  Facts facts(*graph);
  Value last{static_cast<uint32_t>(graph->nodes().size()) - 1, 0};
  std::string text;
  auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (auto splat = facts.splat(last)) add(format("splat {}", *splat));
  if (const Affine* form = facts.affine(last)) add(format("{} + {}", form->offset, text_of(form->steps)));
  if (auto range = facts.range(last)) add(format("{}..{}", range->lo, range->hi));
  return text;
}

struct Case {
  const char* nodes;
  const char* facts;
};

TEST(facts_of_ops, leaves) {
  const Case cases[] = {
      {"c = constant i64[2,2] {1, 2, 4, 5}", "1 + [3,1], 1..5"},
      {"c = constant i64[2,2] {1, 2, 4, 6}", "1..6"},
      {"c = constant i64[1,2] {7, 5}", "7 + [0,-2], 5..7"},
      {"c = constant i64[2] {3, 3}", "splat 3, 3 + [0], 3..3"},
      {"c = constant i64[0] {}", ""},
      {"c = constant i32[2] {-4, 9}", "-4 + [13], -4..9"},
      {"c = constant u8[2] {4, 9}", "4..9"},
      {"c = constant u64[2] {4, 18446744073709551615}", ""},
      {"c = constant u64[2] {18446744073709551615, 18446744073709551615}", ""},
      {"c = constant bool[2] {false, true}", "0 + [1]"},
      {"c = constant bool[2] {true, true}", "splat 1, 1 + [0]"},
      {"c = constant f32[2] {0.5, 0.5}", "splat 0.5"},
      {"c = constant f32[2] {0.5, 1}", ""},
      {"c = constant f32[2] {0, -0}", ""},
      {"c = constant c64[1] {(1, 2)}", ""},
      {"c = iota() shape=[3,4] axis=1 dtype=i64", "0 + [0,1], 0..3"},
      {"c = iota() shape=[3,300] axis=1 dtype=u8", ""},
      {"c = iota() shape=[n] axis=0 dtype=i32", "0 + [1], 0..8"},
      {"c = iota() shape=[n] axis=0 dtype=f32", ""},
      {"c = dim_size(x) axis=0", "n + [], 2..9"},
  };
  for (const Case& it : cases) EXPECT_EQ(facts_of(it.nodes), it.facts) << it.nodes;
}

TEST(facts_of_ops, arithmetic) {
  const Case cases[] = {
      {"i = iota() shape=[3] axis=0 dtype=i64\ny = neg(i)", "0 + [-1], -2..0"},
      {"i = iota() shape=[3] axis=0 dtype=i64\nj = iota() shape=[2,1] axis=0 dtype=i64\ny = add(i, j)",
       "0 + [1,1], 0..3"},
      {"i = iota() shape=[3] axis=0 dtype=i64\nj = iota() shape=[2,1] axis=0 dtype=i64\ny = sub(i, j)",
       "0 + [-1,1], -1..2"},
      {"i = iota() shape=[3] axis=0 dtype=i64\nk = constant i64[2,1] {5, 5}\ny = mul(i, k)", "0 + [0,5], 0..10"},
      {"i = iota() shape=[3] axis=0 dtype=i64\nk = constant i64[2,1] {5, 5}\ny = mul(k, i)", "0 + [0,5], 0..10"},
      {"i = iota() shape=[3] axis=0 dtype=i64\nk = constant i64[2,1] {5, 6}\ny = mul(k, i)", ""},
      {"n = dim_size(x) axis=0\nk = constant i64[] {3}\ny = mul(n, k)", "3*n + [], 6..27"},
      {"n = dim_size(x) axis=0\ny = mul(n, n)", "n*n + [], 4..81"},
      {"c = constant i64[2] {3, 3}\ny = cast(c) to=bool", "splat 1"},
      {"c = constant i64[2] {0, 0}\ny = cast(c) to=bool", "splat 0, 0 + [0]"},
      {"c = constant i64[2] {300, 300}\ny = cast(c) to=u8", ""},
      {"c = constant i64[2] {200, 200}\ny = cast(c) to=u8", "200..200"},
      {"c = constant i64[2] {200, 200}\ny = cast(c) to=i8", ""},
      {"c = constant i64[2] {3, 5}\ny = cast(c) to=i32", "3 + [2], 3..5"},
      {"c = constant i64[2] {3, 3}\ny = cast(c) to=f32", "splat 3"},
      {"c = constant i64[2] {16777217, 16777217}\ny = cast(c) to=f32", "splat 16777216"},
      {"c = constant i64[2] {3, 3}\ny = cast(c) to=f16", ""},
      {"c = constant f32[2] {3, 3}\ny = cast(c) to=f16", "splat 3"},
      {"c = constant f32[2] {65520, 65520}\ny = cast(c) to=f16", ""},
      {"c = constant f16[2] {3, 3}\ny = cast(c) to=bf16", "splat 3"},
      {"c = constant f64[2] {3, 3}\ny = cast(c) to=f16", ""},
      {"c = constant f64[2] {0.1, 0.1}\ny = cast(c) to=f32", "splat 0.10000000149011612"},
      {"c = constant f32[2] {3, 3}\ny = cast(c) to=f64", ""},
      {"c = constant f32[2] {inf, inf}\ny = cast(c) to=f16", ""},
  };
  for (const Case& it : cases) EXPECT_EQ(facts_of(it.nodes), it.facts) << it.nodes;
}

TEST(facts_of_ops, truth) {
  const std::string sizes = "n = dim_size(x) axis=0\nk = constant i64[] {5}\n";
  const std::string truths = sizes + "a = lt(n, k)\nb = eq(n, k)\n";
  const Case cases[] = {
      {"y = eq(n, k)", "-max(min(1,max(0,-n + 5)),min(1,max(0,n - 5))) + 1 + []"},
      {"y = ne(n, k)", "max(min(1,max(0,-n + 5)),min(1,max(0,n - 5))) + []"},
      {"y = lt(n, k)", "min(1,max(0,-n + 5)) + []"},
      {"y = le(n, k)", "-min(1,max(0,n - 5)) + 1 + []"},
      {"y = gt(n, k)", "min(1,max(0,n - 5)) + []"},
      {"y = ge(n, k)", "-min(1,max(0,-n + 5)) + 1 + []"},
      {"y = bit_and(a, b)", "min(-max(min(1,max(0,-n + 5)),min(1,max(0,n - 5))) + 1,min(1,max(0,-n + 5))) + []"},
      {"y = bit_or(a, b)", "max(-max(min(1,max(0,-n + 5)),min(1,max(0,n - 5))) + 1,min(1,max(0,-n + 5))) + []"},
      {"y = bit_xor(a, b)",
       "max(min(-max(min(1,max(0,-n + 5)),min(1,max(0,n - 5))) + 1,-min(1,max(0,-n + 5)) + 1),min(max(min(1,max(0,-n + "
       "5)),min(1,max(0,n - 5))),min(1,max(0,-n + 5)))) + []"},
      {"y = bit_not(a)", "-min(1,max(0,-n + 5)) + 1 + []"},
      {"y = bit_and(n, k)", ""},
      {"y = bit_not(n)", ""},
      {"i = iota() shape=[3] axis=0 dtype=i64\ny = lt(i, k)", ""},
      {"z = lt(k, k)", "0 + []"},
  };
  for (const Case& it : cases) EXPECT_EQ(facts_of(truths + it.nodes), it.facts) << it.nodes;
}

TEST(facts_of_ops, views) {
  const std::string grid = "c = constant i64[2,1,3] {1, 3, 5, 11, 13, 15}\n", row = "c = constant i64[1,3] {2, 2, 2}\n";
  const Case cases[] = {
      {"y = reshape(c) shape=[2,3]", "1 + [10,2], 1..15"},
      {"y = reshape(c) shape=[1,2,1,3,1]", "1 + [0,10,0,2,0], 1..15"},
      {"y = reshape(c) shape=[6]", "1..15"},
      {"y = reshape(c) shape=[3,2]", "1..15"},
      {"y = transpose(c) perm=[2,0,1]", "1 + [2,10,0], 1..15"},
      {"y = broadcast_to(c) shape=[4,2,5,3]", "1 + [0,10,0,2], 1..15"},
      {"y = slice(c) starts=[1] ends=[3] axes=[2]", "3 + [10,0,2], 3..15"},
      {"y = slice(c) starts=[0] ends=[3] axes=[2] steps=[2]", "1 + [10,0,4], 1..15"},
      {"y = slice(c) starts=[1] ends=[2] axes=[0]", "11 + [0,0,2], 11..15"},
      {"y = slice(c) starts=[1,1] ends=[2,3] axes=[0,2]", "13 + [0,0,2], 13..15"},
      {"y = slice(c) starts=[2] ends=[-4] axes=[2] steps=[-1]", "1..15"},
      {"y = flip(c) axes=[2]", ""},
      {"y = slice(c) starts=[n - 2] ends=[n] axes=[2]", "2*n - 3 + [10,0,2], 1..23"},
      {"y = slice(c) starts=[n - 3] ends=[n] axes=[2]", "1..15"},
  };
  for (const Case& it : cases) EXPECT_EQ(facts_of(grid + it.nodes), it.facts) << it.nodes;
  const Case uniform[] = {
      {"y = reshape(c) shape=[3]", "splat 2, 2 + [0], 2..2"},
      {"y = transpose(c) perm=[1,0]", "splat 2, 2 + [0,0], 2..2"},
      {"y = broadcast_to(c) shape=[4,3]", "splat 2, 2 + [0,0], 2..2"},
      {"y = slice(c) starts=[1] ends=[3] axes=[1]", "splat 2, 2 + [0,0], 2..2"},
      {"y = concat(c, c) axis=0", ""},
  };
  for (const Case& it : uniform) EXPECT_EQ(facts_of(row + it.nodes), it.facts) << it.nodes;
}

}  // namespace rlx
