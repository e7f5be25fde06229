// SPDX-License-Identifier: Apache-2.0
// How far above a change rules are tried again: as far as they look down, and no farther.
#include "ir/text.h"
#include "rewrite/rule_set.h"
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

TEST(reach, of_an_op_without_rules_is_nothing) {
  RuleSet rules;
  rules.add(exact, "any", op(Op::kAdd, {any(), any()}), [](const Match&) { return Expr(); });
  for (int id = 1; id < 300; id++)
    if (static_cast<Op>(id) != Op::kAdd) {
      EXPECT_EQ(rules.depth(static_cast<Op>(id)), 0) << id;
    }
}

// Late in the pass, max becomes a number. What follows for values far above is propagated to them, farther than rules
// look.
TEST(reach, what_becomes_known_is_heard_all_the_way_up) {
  RuleSet rules;
  auto number = [](const Match& m, double value) {
    return broadcast_to(m.builder().scalar(DType::kI64, value), m.anchor().dims());
  };
  rules.add(exact, "counts", {Op::kMin}, [](const Match& m) { return m.affine(m.in(0)) ? m.in(0) : Expr(); },
            {.depth = 1});
  rules.add(exact, "known", {Op::kMax}, [=](const Match& m) { return m.take(m.in(0)) ? number(m, 1) : Expr(); },
            {.depth = 1});
  rules.add(exact, "frees", {Op::kRem}, [=](const Match& m) { return number(m, 2); }, {.depth = 1});
  auto graph = rewrite(*parse(R"(graph {
    x = input i64[2]
    five = constant i64[] {5}
    t = abs(x)
    e = max(t, five)
    n1 = neg(e)
    n2 = neg(n1)
    n3 = neg(n2)
    n4 = neg(n3)
    s = min(n4, five)
    a = rem(t, five)
    output s
    output a
  })"),
                       rules, {});
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::string text = print(*graph);
  EXPECT_EQ(text.find("min("), text.npos) << text;
}

// abs takes a use from exp: what is two ops above, views not counted, may have waited for that.
TEST(reach, a_lost_use_is_seen_as_far_up_as_rules_look) {
  int tried = 0;
  RuleSet rules;
  Pattern x = any();
  rules.add(exact, "counts", {Op::kNeg},
            [&](const Match&) {
              tried++;
              return Expr();
            },
            {.depth = 2});
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
