// SPDX-License-Identifier: Apache-2.0
// The sizes of the rows that a loop stacks.
#include "ir/text.h"
#include "ir/with_dims.h"
#include "op_test.h"

namespace rlx::test {

// The guard of the body says that n is at most 3 in every trip. Where no trip is made nothing asks for it, so the node
// says whether the size of a row is n or min(n, 3).
static std::string with_rows(const std::string& rows) {
  return R"(graph (n) {
    x = input f32[n]
    y, z = scan(x) body=graph {
      a = input f32[n]
      part = slice(a) starts=[0] ends=[3]
      row = neg(part)
      output part
      output row
    } n_carry=1 n_xs=0 length=0)" +
         rows + "\n    output z\n  }";
}

TEST(control, a_loop_whose_body_has_guards_keeps_the_sizes_of_its_rows) {
  auto graph = parse(with_rows(""));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const Node& loop = graph->node(graph->outputs()[0].value);
  EXPECT_EQ(loop.attrs.dims("rows"), std::vector<Dim>{Dim::symbol("n")}) << print(*graph);
  EXPECT_EQ(text_of(loop.out[1]), "f32[0,n]");
  auto five = with_dims(*graph, {{"n", Dim(5)}});
  ASSERT_TRUE(five.ok()) << five.status().message();
  EXPECT_EQ(text_of(five->type(five->outputs()[0].value)), "f32[0,5]");
  auto again = parse(print(*graph));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(print(*again), print(*graph));
}

TEST(control, sizes_of_rows_that_are_given_count_where_every_trip_can_meet_them) {
  auto graph = parse(with_rows(" rows=[3]"));
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  EXPECT_EQ(text_of(graph->type(graph->outputs()[0].value)), "f32[0,3]");
}

TEST(control, a_while_keeps_the_sizes_of_its_rows_too) {
  auto looped = [](const std::string& rows) {
    return parse(R"(graph (n) {
      x = input f32[n]
      y, z = while(x) cond=graph {
        a = input f32[n]
        more = constant bool[] {false}
        output more
      } body=graph {
        a = input f32[n]
        part = slice(a) starts=[0] ends=[3]
        row = neg(part)
        output part
        output row
      } n_carry=1 max_trips=4)" +
                 rows + "\n      output z\n    }");
  };
  for (auto [rows, size] : {std::pair("", Dim::symbol("n")), std::pair(" rows=[3]", Dim(3))}) {
    auto graph = looped(rows);
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    Value z = graph->outputs()[0].value;
    EXPECT_EQ(graph->node(z).attrs.dims("rows"), std::vector<Dim>{size}) << print(*graph);
    EXPECT_EQ(graph->type(z).dims.back(), size);
    auto again = parse(print(*graph));
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(print(*again), print(*graph));
  }
}

TEST(control, a_while_stacks_no_more_rows_than_it_may_make_trips) {
  for (int64_t most : {0, 3, -1}) {
    auto graph = parse(R"(graph {
      x = input f32[]
      y, z = while(x) cond=graph {
        a = input f32[]
        nine = constant f32[] {9}
        more = lt(a, nine)
        output more
      } body=graph {
        a = input f32[]
        one = constant f32[] {1}
        next = add(a, one)
        output next
        output a
      } n_carry=1 max_trips=)" +
                       std::to_string(most) + "\n output z\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    Interval rows = graph->range(graph->type(graph->outputs()[0].value).dims[0]);
    if (most < 0)
      EXPECT_GE(rows.hi, kLargestSymbol);
    else
      EXPECT_EQ(rows.hi, most);
  }
}

TEST(control, wrong_sizes_of_rows_are_refused) {
  auto message = [](const std::string& rows) { return std::string(parse(with_rows(rows)).status().message()); };
  EXPECT_NE(message(" rows=[n,n]").find("'rows' lists 2 sizes, but the rows that the body stacks have 1"),
            std::string::npos)
      << message(" rows=[n,n]");
  EXPECT_NE(message(" rows=[-1]").find("negative"), std::string::npos) << message(" rows=[-1]");
  auto scanned = [](const std::string& rows) {
    return parse(R"(graph (n) {
      x = input f32[n,3]
      z = scan(x) body=graph {
        a = input f32[3]
        output a
      } n_carry=0 n_xs=1)" +
                 rows + "\n      output z\n    }");
  };
  auto five = scanned(" rows=[5]");
  ASSERT_FALSE(five.ok()) << print(*five);
  EXPECT_EQ(five.status().code(), Code::kShape);
  EXPECT_NE(five.status().message().find("the size of a row"), std::string::npos) << five.status().message();
  auto three = scanned(" rows=[3]");
  EXPECT_TRUE(three.ok()) << three.status().message();
}

}  // namespace rlx::test
