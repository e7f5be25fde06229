// SPDX-License-Identifier: Apache-2.0
// How far above a change rules are tried again: as far as they look down, and no farther.
#include "ir/text.h"
#include "rewrite/rules.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;
using namespace patterns;

TEST(reach, of_a_pattern_is_its_longest_path_without_casts) {
  Pattern x = any(), y = any();
  auto depth = [](const Pattern& pattern, Op anchor) {
    RuleSet rules;
    rules.add(exact, "any", pattern, [](const Match&) { return Expr(); });
    EXPECT_EQ(rules.depth(), rules.depth(anchor));
    return rules.depth(anchor);
  };
  EXPECT_EQ(depth(op(Op::kAdd, {x, y}), Op::kAdd), 1);
  EXPECT_EQ(depth(op(Op::kAdd, {x, op(Op::kTanh, {y})}), Op::kAdd), 2);
  EXPECT_EQ(depth(op(Op::kAdd, {op(Op::kCast, {op(Op::kTanh, {y})}), x}), Op::kAdd), 2);
  EXPECT_EQ(depth(product({x, y}), Op::kMul), 2) << "factors may stand in a tree";
  EXPECT_EQ(depth(product({op(Op::kTanh, {x}), y}), Op::kMul), 3);
}

// abs takes a use from exp: what is two ops above, views not counted, may have waited for that.
TEST(reach, a_lost_use_is_seen_as_far_up_as_rules_look) {
  int tried = 0;
  RuleSet rules;
  Pattern x = any();
  rules.add(
      exact, "counts", std::vector{Op::kNeg},
      [&](const Match&) {
        tried++;
        return Expr();
      },
      2);
  rules.add(exact, "frees", op(Op::kAbs, {op(Op::kExp, {x}).shared()}),
            [=](const Match& m) { return unary(Op::kExpm1, m[x]); });
  auto graph = rewrite(*parse(R"(graph {
    x = input f32[2,3]
    e = exp(x)
    t = transpose(e) perm=[1,0]
    n1 = neg(t)
    n2 = neg(n1)
    n3 = neg(n2)
    n4 = neg(n3)
    a = abs(e)
    output n4
    output a
  })"),
                       rules, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(tried, 4 + 2);
}

}  // namespace rlx
