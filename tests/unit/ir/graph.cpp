// SPDX-License-Identifier: Apache-2.0
// Graph building: inference, symbolic sizes, guards, and what errors say.
#include "ir/graph.h"

#include <gtest/gtest.h>
#include <algorithm>
#include <ctime>
#include <limits>
#include <numeric>

#include "ir/text.h"
#include "ops/expr.h"
#include "ops/interpret.h"

namespace rlx {

static const Dim kBatch = Dim::symbol("batch"), kSeq = Dim::symbol("seq");

TEST(graph, infers_symbolic_shapes_through_products_and_reshapes) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {kBatch, kSeq, 12}));
  Expr w = b.wrap(*graph.add_param("w", DType::kF32, {12, 8}));
  Expr y = reshape(matmul(x, w), {kBatch, kSeq, 2, -1});
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_EQ(text_of(y.type()), "f32[batch,seq,2,4]");
  EXPECT_EQ(text_of(reshape(y, {-1, 8}).type()), "f32[batch*seq,8]");
  EXPECT_EQ(text_of(slice(x, 1, 1, 100, 1).type()), "f32[batch,max(0,min(100,seq) - 1),12]");
}

TEST(graph, an_unproved_equality_becomes_a_guard_and_a_refuted_one_an_error) {
  Graph graph;
  Value a = *graph.add_input("a", DType::kF32, {kBatch}), b = *graph.add_input("b", DType::kF32, {kSeq});
  ASSERT_TRUE(graph.add(Op::kAdd, std::array{a, b}).ok());
  ASSERT_EQ(graph.guards().size(), 1u);
  Value c = *graph.add_input("c", DType::kF32, {Dim(3)}), d = *graph.add_input("d", DType::kF32, {Dim(4)});
  auto failed = graph.add(Op::kAdd, std::array{c, d}, {}, "sum");
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kShape);
  EXPECT_EQ(failed.status().message(),
            "add 'sum': [3] and [4] do not broadcast: 4 is not 3; a is input 'c' f32[3], b is input 'd' f32[4]");
}

TEST(graph, nan_is_in_no_range) {
  Graph graph;
  Value x = *graph.add_input("x", DType::kF32, {Dim(2), Dim(3)}), labels = *graph.add_input("i", DType::kI64, {Dim(2)});
  auto loss = [&](double smoothing) {
    return graph.add(Op::kSoftmaxCrossEntropy, std::array{x, labels}, {{"smoothing", smoothing}}).status().code();
  };
  EXPECT_EQ(loss(0.5), Code::kOk);
  EXPECT_EQ(loss(std::numeric_limits<double>::quiet_NaN()), Code::kOption);
  EXPECT_TRUE(graph.add(Op::kLeakyRelu, std::array{x}, {{"alpha", std::numeric_limits<double>::quiet_NaN()}}).ok());
}

// Sizes that differ by 0 at least: the larger is the same one wherever it stands.
TEST(graph, of_two_sizes_the_larger_is_the_one_that_is_never_smaller) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("k", {1, 10}).ok());
  Dim k = Dim::symbol("k"), rest = k - 1;
  for (const auto& [larger, smaller] : {std::pair{max(0, rest), min(0, rest)}, {max(rest, 0), min(rest, 0)}}) {
    EXPECT_TRUE(graph.implies(Guard::kEqual, larger, rest));
    EXPECT_FALSE(graph.implies(Guard::kEqual, larger, 0));
    EXPECT_TRUE(graph.implies(Guard::kEqual, smaller, 0));
    EXPECT_FALSE(graph.implies(Guard::kEqual, smaller, rest));
    EXPECT_TRUE(graph.resolved(larger) == rest);
    EXPECT_TRUE(graph.resolved(smaller) == 0);
  }
}

// Once n <= m is known, max(n, m) is m; what was said of it before still holds.
TEST(graph, a_guard_holds_for_dims_as_they_were_written) {
  Graph graph;
  for (const char* name : {"n", "m", "k"}) ASSERT_TRUE(graph.declare_symbol(name, {0, 100}).ok());
  Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k"), larger = max(n, m);
  ASSERT_TRUE(graph.add_guard({Guard::kEqual, larger, k, ""}).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, n, m, ""}).ok());
  EXPECT_TRUE(graph.is_same_type({DType::kF32, {larger}}, {DType::kF32, {k}}));
  EXPECT_TRUE(graph.is_same_type({DType::kF32, {larger}}, {DType::kF32, {m}}));
  EXPECT_FALSE(graph.is_same_type({DType::kF32, {larger}}, {DType::kF32, {n}}));
}

// Types of one size, inferred before and after 1 <= n was known.
TEST(graph, a_min_or_max_in_a_sum_is_known_by_its_operands) {
  Graph graph;
  Dim n = Dim::symbol("n"), one_less = max(0, n - 1), two_less = max(0, n - 2);
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, 1, n, ""}).ok());
  auto is_same = [&](const Dim& a, const Dim& b) { return graph.is_same_type({DType::kF32, {a}}, {DType::kF32, {b}}); };
  EXPECT_TRUE(is_same(one_less - two_less, max(0, n - two_less - 1)));
  EXPECT_FALSE(is_same(two_less - one_less, max(0, n - two_less - 1)));
  EXPECT_FALSE(is_same(one_less - two_less, max(0, n - one_less - 2)));
  EXPECT_TRUE(graph.implies(Guard::kLessEqual, min(n, 7) + min(n, 5), 12));
  EXPECT_FALSE(graph.implies(Guard::kLessEqual, 12, min(n, 7) + min(n, 5)));
  EXPECT_FALSE(graph.implies(Guard::kLessEqual, max(n, 7) + 1, n + 1));
}

// (n0 + 1)(n1 + 2)... from the first to the last, or from the last to the first.
static Dim long_product(int count, bool from_last) {
  Dim product = 1;
  for (int i = 0; i < count; i++) {
    int at = from_last ? count - 1 - i : i;
    product *= Dim::symbol("n" + std::to_string(at)) + Dim(at + 1);
  }
  return product;
}

// Whether two long sizes are equal may take more to say than a size may be long.
TEST(graph, long_sizes_get_a_guard_and_messages_show_their_beginning) {
  auto reshaped = [](const Dim& from, const Dim& to) {
    Graph graph;
    Value x = *graph.add_input("x", DType::kF32, {from});
    return graph.add(Op::kReshape, std::array{x}, {{"shape", std::vector<Dim>{to}}}).status();
  };
  Status accepted = reshaped(long_product(9, false), long_product(9, true));
  EXPECT_TRUE(accepted.ok()) << accepted.message();
  Status refused = reshaped(long_product(9, false), long_product(9, false) + 1);
  EXPECT_EQ(refused.code(), Code::kShape);
  EXPECT_LT(refused.message().size(), 1000u) << refused.message();
}

// What a guard says of a size holds wherever that size stands; an upper bound fixes no size.
TEST(graph, a_fixed_size_is_known_in_other_sizes) {
  auto is_square_16 = [](Guard::Relation relation) {
    Graph graph;
    Dim n = Dim::symbol("n");
    EXPECT_TRUE(graph.declare_guard({relation, n, 4, {}}).ok());
    return graph.is_same_type({DType::kF32, {n * n}}, {DType::kF32, {16}});
  };
  EXPECT_TRUE(is_square_16(Guard::kEqual));
  EXPECT_FALSE(is_square_16(Guard::kLessEqual));
}

// A guard of one symbol says what its range says, here and in a graph within; what is rolled back says nothing.
TEST(graph, a_guard_of_one_size_proves_what_is_weaker) {
  Graph graph;
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Graph::Mark mark = graph.mark();
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, 0, n - 2, ""}).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, 3 * m, 11, ""}).ok());
  const Graph inner("", &graph.table(), &graph);
  for (const Graph* at : {&std::as_const(graph), &inner}) {
    EXPECT_TRUE(at->implies(Guard::kLessEqual, 0, n - 1));
    EXPECT_TRUE(at->implies(Guard::kLessEqual, floor_div(1 - n, 3), -1));
    EXPECT_TRUE(at->implies(Guard::kLessEqual, m, n + 1));
    EXPECT_FALSE(at->implies(Guard::kLessEqual, m, n));
    EXPECT_FALSE(at->implies(Guard::kLessEqual, 3, n));
    EXPECT_FALSE(at->implies(Guard::kLessEqual, m, 2));
  }
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, 1, n, ""}).ok());
  EXPECT_EQ(graph.guards().size(), 2u);
  graph.roll_back(mark);
  EXPECT_FALSE(graph.implies(Guard::kLessEqual, 1, n));
}

// Once the maximum is decided, a guard of the same form is found, though the other side stays as it is.
TEST(graph, a_maximum_that_a_guard_decides_is_known_on_either_side) {
  Graph graph;
  Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k"), half = floor_div(max(n, m) * max(n, m), 2);
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, n, m, ""}).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, floor_div(m * m, 2), k, ""}).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, 3 * k, floor_div(m * m, 2), ""}).ok());
  EXPECT_TRUE(graph.implies(Guard::kLessEqual, half, k));
  EXPECT_TRUE(graph.implies(Guard::kLessEqual, 3 * k, half));
}

TEST(graph, a_guard_of_a_product_or_square_bounds_no_factor_alone) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  for (const Dim& size : {n * m, n * n}) {
    Graph graph;
    ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, 6, size, ""}).ok());
    EXPECT_FALSE(graph.implies(Guard::kLessEqual, 6, n)) << size.text();
    EXPECT_FALSE(graph.implies(Guard::kLessEqual, 6, m)) << size.text();
  }
}

TEST(graph, a_size_that_is_its_minimum_with_a_longer_one_is_bounded_by_it) {
  Graph graph;
  Dim n = Dim::symbol("n"), longer = 2 * Dim::symbol("k") + 3;
  ASSERT_TRUE(graph.add_guard({Guard::kEqual, n, min(n, longer), ""}).ok());
  EXPECT_EQ(graph.guards()[0].relation, Guard::kLessEqual);
  EXPECT_TRUE(graph.implies(Guard::kLessEqual, n, longer));
}

// With m >= 2, it says that m = 2, whichever of the two comes first.
TEST(graph, a_size_that_is_its_minimum_with_another_is_bounded_by_it) {
  Dim m = Dim::symbol("m");
  const Guard least{Guard::kLessEqual, 2, m, ""};
  for (const Guard& bound : {Guard{Guard::kEqual, m, min(2, m), ""}, Guard{Guard::kEqual, 2, max(2, m), ""}}) {
    Graph first, last;
    ASSERT_TRUE(first.add_guard(bound).ok());
    EXPECT_TRUE(first.implies(Guard::kLessEqual, m, 2));
    EXPECT_FALSE(first.implies(Guard::kLessEqual, 2, m));
    ASSERT_TRUE(first.add_guard(least).ok());
    ASSERT_TRUE(last.add_guard(least).ok());
    ASSERT_TRUE(last.add_guard(bound).ok());
    for (const Graph* graph : {&first, &last}) {
      EXPECT_TRUE(graph->implies(Guard::kEqual, m, 2));
      EXPECT_EQ(graph->guards().size(), 2u);
    }
  }
}

// Whichever comes first. What is rolled back says nothing.
TEST(graph, guards_that_no_size_meets_are_refused) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Guard fixes{Guard::kEqual, 4, n, "matmul"}, bounds{Guard::kEqual, n, min(3, n), "slice"};
  Graph first, last;
  EXPECT_TRUE(first.add_guard(fixes).ok());
  EXPECT_EQ(first.add_guard(bounds).message(), "slice: n <= 3 does not hold");
  EXPECT_TRUE(last.add_guard({Guard::kEqual, m, 7, {}}).ok());
  Graph::Mark mark = last.mark();
  EXPECT_TRUE(last.add_guard(bounds).ok());
  EXPECT_EQ(last.add_guard(fixes).message(), "matmul: 4 = n does not hold, as n <= 3");
  last.roll_back(mark);
  EXPECT_TRUE(last.add_guard(fixes).ok());
}

TEST(graph, bounds_that_leave_no_size_are_refused_in_either_order) {
  Dim n = Dim::symbol("n");
  Guard least{Guard::kLessEqual, 7, n, "lstsq"}, most{Guard::kLessEqual, n, 1, "gather"};
  for (bool is_reversed : {false, true}) {
    Graph graph;
    ASSERT_TRUE(graph.add_guard(is_reversed ? most : least).ok());
    Graph::Mark mark = graph.mark();
    Status refused = graph.add_guard(is_reversed ? least : most);
    EXPECT_EQ(refused.code(), Code::kShape);
    EXPECT_NE(refused.message().find("as other guards leave no size for 'n'"), std::string::npos) << refused.message();
    EXPECT_EQ(graph.mark(), mark);
  }
}

TEST(graph, a_leaf_that_is_rolled_back_may_come_again) {
  Graph graph;
  ASSERT_TRUE(graph.add_input("x", DType::kF32, {2}).ok());
  ASSERT_TRUE(graph.add_param("w", DType::kF32, {2}).ok());
  Graph::Mark mark = graph.mark();
  for (int64_t size : {3, 4}) {
    graph.roll_back(mark);
    EXPECT_FALSE(graph.find_leaf("y") || graph.find_leaf("v"));
    Value input = *graph.add_input("y", DType::kF32, {size}), param = *graph.add_param("v", DType::kF32, {size});
    EXPECT_EQ(graph.find_leaf("y"), input);
    EXPECT_EQ(graph.find_leaf("v"), param);
    EXPECT_EQ(graph.inputs().size(), 2u);
    EXPECT_EQ(graph.params().size(), 2u);
  }
  EXPECT_TRUE(graph.find_leaf("x") && graph.find_leaf("w"));
}

// Whichever comes first. What is rolled back says nothing.
TEST(graph, a_guard_that_decides_a_minimum_is_read_into_those_that_name_it) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");
  Guard names{Guard::kLessEqual, k * k, 2 * min(n, m) + 1, ""}, decides{Guard::kLessEqual, n, m, ""};
  Graph first, last;
  ASSERT_TRUE(first.add_guard(names).ok());
  Graph::Mark mark = first.mark();
  ASSERT_TRUE(first.add_guard(decides).ok());
  ASSERT_TRUE(last.add_guard(decides).ok());
  ASSERT_TRUE(last.add_guard(names).ok());
  for (const Graph* graph : {&first, &last}) EXPECT_TRUE(graph->implies(Guard::kLessEqual, k * k, 2 * n + 1));
  first.roll_back(mark);
  EXPECT_FALSE(first.implies(Guard::kLessEqual, k * k, 2 * n + 1));
  ASSERT_TRUE(first.add_guard({Guard::kLessEqual, m, n, ""}).ok());
  EXPECT_TRUE(first.implies(Guard::kLessEqual, k * k, 2 * m + 1));
}

// Whatever their order.
TEST(graph, equations_of_sizes_are_solved_together) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");
  std::vector<Guard> guards{{Guard::kEqual, n, 2 * m, {}},
                            {Guard::kLessEqual, m, k, {}},
                            {Guard::kLessEqual, k, m, {}},
                            {Guard::kEqual, n + k, 9, {}}};
  auto less = [](const Guard& a, const Guard& b) { return Dim::compare(a.b - a.a, b.b - b.a) < 0; };
  std::sort(guards.begin(), guards.end(), less);
  do {
    Graph graph;
    for (const Guard& guard : guards) ASSERT_TRUE(graph.add_guard(guard).ok());
    EXPECT_TRUE(graph.implies(Guard::kEqual, k, 3)) << guards[0].a.text();
    EXPECT_TRUE(graph.is_same_type({DType::kF32, {n * m}}, {DType::kF32, {18}}));
    EXPECT_FALSE(graph.implies(Guard::kEqual, k, 6));
    Graph::Mark mark = graph.mark();
    EXPECT_FALSE(graph.add_guard({Guard::kEqual, m, k + 1, {}}).ok());
    EXPECT_FALSE(graph.add_guard({Guard::kLessEqual, m, 2, {}}).ok());
    EXPECT_EQ(graph.guards().size(), mark.sizes.guards);
  } while (std::next_permutation(guards.begin(), guards.end(), less));
}

// n = 2 m is known of m = 0 and n = m; a text with these guards, read back, has no other.
TEST(graph, equations_say_what_no_guard_of_them_says_alone) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  Graph graph;
  for (const Guard& guard : {Guard{Guard::kEqual, m, 0, {}}, {Guard::kEqual, m, n, {}}, {Guard::kEqual, n, 2 * m, {}}})
    EXPECT_TRUE(graph.add_guard(guard).ok());
  EXPECT_EQ(graph.guards().size(), 2u);
}

TEST(graph, equations_without_integer_solutions_are_refused) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_FALSE(Graph().add_guard({Guard::kEqual, 2 * n, 4 * m + 1, {}}).ok());
  Graph graph;  // 2 n = 3 m is solved for neither, but n = 3 says what m is
  EXPECT_TRUE(graph.add_guard({Guard::kEqual, 2 * n, 3 * m, {}}).ok());
  Graph::Mark mark = graph.mark();
  EXPECT_EQ(graph.add_guard({Guard::kEqual, n, 4, "mul"}).message(), "mul: n = 4 does not hold, as 2*n = 3*m");
  EXPECT_TRUE(graph.add_guard({Guard::kEqual, n, 3, {}}).ok());
  EXPECT_TRUE(graph.implies(Guard::kEqual, m, 2));
  graph.roll_back(mark);
  EXPECT_FALSE(graph.implies(Guard::kEqual, m, 2));
  EXPECT_TRUE(graph.add_guard({Guard::kEqual, m, 4, {}}).ok());
  EXPECT_TRUE(graph.implies(Guard::kEqual, n, 6));
}

// A formula that is not linear does not hide a number, in whichever order they are learned.
TEST(graph, linear_equations_win_over_others) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m"), k = Dim::symbol("k");
  std::vector<std::vector<Guard>> cases{
      {{Guard::kEqual, n, min(1, m), {}}, {Guard::kEqual, n, 1, {}}},
      {{Guard::kEqual, n, m * m, {}}, {Guard::kEqual, n, k, {}}, {Guard::kEqual, k, 1, {}}},
      {{Guard::kEqual, n, min(1, k), {}}, {Guard::kEqual, n, k, {}}, {Guard::kEqual, k, 1, {}}}};
  for (const std::vector<Guard>& guards : cases) {
    std::vector<size_t> order(guards.size());
    std::iota(order.begin(), order.end(), 0);
    do {
      Graph graph;
      Graph::Mark mark = graph.mark();
      for (size_t i : order) EXPECT_TRUE(graph.add_guard(guards[i]).ok());
      EXPECT_FALSE(graph.add_guard({Guard::kEqual, n, 2 * n, {}}).ok()) << text_of(guards[order[0]]);
      graph.roll_back(mark);
      EXPECT_TRUE(graph.add_guard({Guard::kEqual, n, 7, {}}).ok());
      EXPECT_FALSE(graph.add_guard({Guard::kEqual, n, 8, {}}).ok());
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

// A size is in the ranges of all that it equals, in whichever order that is learned.
TEST(graph, equal_sizes_share_their_ranges) {
  Dim a = Dim::symbol("a"), b = Dim::symbol("b"), c = Dim::symbol("c"), open = Dim::symbol("open");
  auto refused_at_last = [](Graph graph, std::vector<Guard> guards) {
    auto less = [](const Guard& x, const Guard& y) { return Dim::compare(x.b - x.a, y.b - y.a) < 0; };
    std::sort(guards.begin(), guards.end(), less);
    do {
      Graph::Mark mark = graph.mark();
      for (size_t i = 0; i < guards.size(); i++)
        EXPECT_EQ(graph.add_guard(guards[i]).ok(), i + 1 < guards.size())
            << i << " of the order from " << guards[0].a.text();
      graph.roll_back(mark);
    } while (std::next_permutation(guards.begin(), guards.end(), less));
  };
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("a", {0, 3}).ok());
  ASSERT_TRUE(graph.declare_symbol("b", {5, 9}).ok());
  ASSERT_TRUE(graph.declare_symbol("c", {1, 9}).ok());
  refused_at_last(graph, {{Guard::kEqual, a, open, {}}, {Guard::kEqual, b, open, {}}});
  refused_at_last(graph,
                  {{Guard::kEqual, a, open, {}}, {Guard::kEqual, c, open, {}}, {Guard::kEqual, 4 * a, 5 * open, {}}});
  // A product that is 0 only if a size is, which equals another that is not.
  for (const char* name : {"d", "z"})
    refused_at_last(graph, {{Guard::kEqual, Dim::symbol(name), open, {}},
                            {Guard::kEqual, 4 * c * Dim::symbol(name), 5 * c * Dim::symbol(name), {}},
                            {Guard::kEqual, open, b, {}}});
}

TEST(graph, equations_that_leave_a_range_are_refused) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 8}).ok());
  ASSERT_TRUE(graph.declare_symbol("m", {3, 8}).ok());
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ(graph.add_guard({Guard::kEqual, n, 3 * m, "join"}).message(), "join: n = 3*m does not hold");
}

// a1 = a2, a0 = a1, ...: each symbol that is solved last is one that the others are solved by.
TEST(graph, long_chains_of_equations_cost_the_same_in_every_order) {
  constexpr int kSizes = 5000;
  auto size = [](int i) { return Dim::symbol(format("a{:05}", i)); };
  for (bool descends : {false, true}) {
    Graph graph;
    auto add = [&](int first, int end) {
      for (int i = first; i < end; i++) {
        int at = descends ? kSizes - 1 - i : i;
        ASSERT_TRUE(graph.add_guard({Guard::kEqual, size(at), size(at + 1) + 1, {}}).ok());
      }
    };
    std::clock_t begin = std::clock();
    add(0, kSizes / 2);
    Graph::Mark mark = graph.mark();
    add(kSizes / 2, kSizes);
    graph.roll_back(mark);
    EXPECT_FALSE(graph.implies(Guard::kEqual, size(7), size(4007) + 4000));
    add(kSizes / 2, kSizes);
    EXPECT_TRUE(graph.implies(Guard::kEqual, size(7), size(4007) + 4000));
    EXPECT_FALSE(graph.add_guard({Guard::kEqual, size(7), size(4007), {}}).ok());
    EXPECT_LT(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC, 4);
  }
}

// Each equation narrows the range of what stands for all of them.
static double seconds_to_make_equal(int count) {
  Graph graph;
  auto size = [](int i) { return Dim::symbol(format("s{}", i)); };
  for (int i = 0; i < count; i++)
    EXPECT_TRUE(graph.declare_symbol(*size(i).symbol_name(), {count / 2 - i / 2, 3 * count - i}).ok());
  std::clock_t begin = std::clock();
  for (int i = 1; i < count; i++) EXPECT_TRUE(graph.add_guard({Guard::kEqual, size(i - 1), size(i), {}}).ok());
  EXPECT_FALSE(graph.add_guard({Guard::kEqual, size(count / 2), 2 * count + 2, {}}).ok());
  EXPECT_TRUE(graph.add_guard({Guard::kEqual, size(count / 2), 2 * count + 1, {}}).ok());
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(graph, equal_sizes_of_many_ranges_are_solved_in_linear_time) {
  double few = seconds_to_make_equal(400), many = seconds_to_make_equal(4000);
  std::printf("equal sizes: %.1f ms for 400, %.1f ms for 4,000\n", few * 1e3, many * 1e3);
  EXPECT_LT(many, 10 * 3 * few + 0.05);
}

// A rule that requires a guard, and then declines, leaves no trace.
TEST(graph, whether_a_guard_is_derived_is_as_before_after_a_roll_back) {
  Graph graph;
  Guard guard{
      .relation = Guard::kEqual, .a = Dim::symbol("a"), .b = Dim::symbol("b") * 2, .where = "x", .is_derived = true};
  ASSERT_TRUE(graph.add_guard(guard).ok());
  ASSERT_EQ(graph.guards().size(), 1u);
  Graph::Mark mark = graph.mark();
  guard.is_derived = false;
  ASSERT_TRUE(graph.add_guard(guard).ok());
  EXPECT_FALSE(graph.guards()[0].is_derived);
  EXPECT_NE(graph.mark(), mark);
  graph.roll_back(mark);
  ASSERT_EQ(graph.guards().size(), 1u);
  EXPECT_TRUE(graph.guards()[0].is_derived);
  EXPECT_EQ(graph.mark(), mark);
}

// After a roll-back, a guard is asked again of the symbols that it names itself, not of those they were equal to.
TEST(graph, guards_of_equal_sizes_are_asked_again_after_a_roll_back) {
  Graph graph;
  Dim a = Dim::symbol("a"), b = Dim::symbol("b"), c = Dim::symbol("c"), d = Dim::symbol("d");
  for (auto [name, range] :
       {std::pair<const char*, Interval>{"a", {0, 9}}, {"b", {0, 8}}, {"c", {0, 7}}, {"d", {5, 6}}})
    ASSERT_TRUE(graph.declare_symbol(name, range).ok());
  ASSERT_TRUE(graph.add_guard({Guard::kLessEqual, 2 * b, 9, {}}).ok());
  for (int round = 0; round < 2; round++) {
    Graph::Mark mark = graph.mark();
    ASSERT_TRUE(graph.add_guard({Guard::kEqual, a, b, {}}).ok());
    ASSERT_TRUE(graph.add_guard({Guard::kEqual, a, c, {}}).ok());
    EXPECT_FALSE(graph.add_guard({Guard::kEqual, c, d, {}}).ok()) << "2*b <= 9";
    graph.roll_back(mark);
    mark = graph.mark();
    EXPECT_TRUE(graph.add_guard({Guard::kEqual, c, d, {}}).ok());
    EXPECT_TRUE(graph.add_guard({Guard::kEqual, a, c, {}}).ok());
    EXPECT_FALSE(graph.add_guard({Guard::kEqual, a, b, {}}).ok());
    graph.roll_back(mark);
  }
}

// A square of a square of a square...: neither time nor memory follow what it would be if it were multiplied out.
TEST(graph, equations_of_products_stay_short) {
  Graph graph;
  auto size = [](int i) { return Dim::symbol("s" + std::to_string(i)); };
  for (int i = 0; i < 60; i++) EXPECT_TRUE(graph.add_guard({Guard::kEqual, size(i + 1), size(i) * size(i), {}}).ok());
  EXPECT_TRUE(graph.implies(Guard::kEqual, size(2), size(1) * size(1)));
  EXPECT_TRUE(graph.implies(Guard::kEqual, size(2), size(0) * size(0) * size(0) * size(0)));
}

// As exporters write "from the beginning", and starts that no size reaches.
TEST(graph, a_slice_that_starts_before_every_size_starts_at_0) {
  for (int64_t start : {INT64_MIN, INT64_MIN + 1, -(int64_t{1} << 62), int64_t{-9}})
    for (int64_t end : {int64_t{-1}, int64_t{7}, INT64_MAX}) {
      Graph graph;
      ASSERT_TRUE(graph.declare_symbol("n", {1, 7}).ok());
      Value x = *graph.add_input("x", DType::kF32, {Dim::symbol("n")});
      auto y = graph.add(Op::kSlice, {&x, 1},
                         {{"starts", std::vector<Dim>{start}}, {"ends", std::vector<Dim>{end}}, {"axes", Axes{0}}});
      ASSERT_TRUE(y.ok()) << y.status().message();
      EXPECT_EQ(graph.type(*y).dims[0].text(), end < 0 ? "n - 1" : "n") << start << " " << end;
      ASSERT_TRUE(graph.add_output("y", *y).ok());
      EXPECT_TRUE(parse(print(graph)).ok()) << print(graph);
    }
}

// Sizes that attributes name. What the formulas of ops give ends in max(0, x) where it may be negative.
TEST(graph, a_size_that_may_be_negative_gets_a_guard) {
  Graph graph;
  ASSERT_TRUE(graph.declare_symbol("n", {0, 8}).ok());
  Builder b(graph);
  Dim n = Dim::symbol("n");
  (void)iota(b, {n + 1, n * n}, 0, DType::kI64);
  EXPECT_TRUE(graph.guards().empty());
  (void)broadcast_to(b.scalar(DType::kF32, 1), {1, n - 3});
  ASSERT_EQ(graph.guards().size(), 1u);
  EXPECT_EQ(graph.guards()[0].relation, Guard::kLessEqual);
  EXPECT_EQ(graph.guards()[0].b - graph.guards()[0].a, n - 3);
  (void)iota(b, {n - 3, n}, 0, DType::kI64);
  EXPECT_EQ(graph.guards().size(), 1u);
  (void)reshape(iota(b, {Dim(1)}, 0, DType::kI64), {5 - n, 5 - n});
  EXPECT_TRUE(graph.implies(Guard::kLessEqual, n, 5)) << "(-1) * (-1) is one element, too";
  EXPECT_TRUE(b.status().ok()) << b.status().message();
  EXPECT_FALSE(iota(b, {n - 9}, 0, DType::kI64).valid());
  EXPECT_NE(b.take_status().message().find("the size n - 9 is negative"), std::string::npos);
}

TEST(graph, the_interpreter_wants_params_of_their_types) {
  auto graph = parse("graph {\n x = input f32[2]\n w = param f32[2]\n y = add(x, w)\n output y\n}");
  ASSERT_TRUE(graph.ok());
  Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 1>{2});
  auto results = interpret(*graph, {&x, 1}, {{"w", *Tensor::create(DType::kF32, std::array<int64_t, 1>{1})}});
  ASSERT_FALSE(results.ok());
  EXPECT_EQ(results.status().code(), Code::kShape);
}

TEST(graph, messages_name_op_input_expected_and_got) {
  Graph graph;
  Value x = *graph.add_input("x", DType::kF32, {Dim(3)}), i = *graph.add_input("i", DType::kI64, {Dim(3)});
  auto mixed = graph.add(Op::kMul, std::array{x, i});
  EXPECT_EQ(mixed.status().message(),
            "mul: input 'b' is i64, but input 'a' is f32: they must agree (a cast converts); "
            "a is input 'x' f32[3], b is input 'i' i64[3]");
  EXPECT_EQ(*mixed.status().detail("op"), "mul");
  EXPECT_EQ(graph.add(Op::kGelu, std::array{x}, {{"approx", "erf"}}).status().message(),
            "gelu: 'approx' must be one of none|tanh, not 'erf'");
  EXPECT_EQ(graph.add(Op::kGelu, std::array{x}, {{"eps", 1.0}}).status().message(),
            "gelu: unknown attribute 'eps', known: approx");
  EXPECT_EQ(graph.add(Op::kExp, std::array{x, x}).status().message(),
            "exp: takes 1 input, not 2; x is input 'x' f32[3], input 1 is input 'x' f32[3]");
}

TEST(graph, the_interpreter_runs_composites_by_their_decomposition) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {kBatch, 4}));
  Outputs norm = b.ops(Op::kLayerNorm, {x});
  ASSERT_TRUE(graph.add_output("y", norm[0].value()).ok());
  ASSERT_TRUE(graph.add_output("mean", norm[1].value()).ok());
  Tensor in = *Tensor::create(DType::kF32, std::array<int64_t, 2>{1, 4});
  for (int i = 0; i < 4; i++) in.as<float>()[i] = static_cast<float>(i + 1);
  auto out = interpret(graph, std::array{in}, {}, {.mode = EvalMode::kOracle});
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_NEAR((*out)[0].as<double>()[0], -1.34163542, 1e-8);
  EXPECT_EQ((*out)[1].as<double>()[0], 2.5);
}

TEST(graph, the_interpreter_names_the_rank_of_an_input) {
  auto graph = parse("graph {\n x = input f32[2,n]\n output x\n}");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  std::string told(
      interpret(*graph, std::array{*Tensor::create(DType::kF32, std::array<int64_t, 1>{2})}).status().message());
  EXPECT_NE(told.find("rank 2"), told.npos) << told;
}

TEST(graph, nodes_stay_where_they_are_while_others_are_added) {
  Graph graph;
  Builder b(graph);
  Expr x = b.wrap(*graph.add_input("x", DType::kF32, {kBatch}));
  const Node* first = &graph.node(0);
  for (int i = 0; i < 1000; i++) x = -x;
  EXPECT_EQ(first, &graph.node(0));
}

TEST(graph, a_size_that_is_not_negative_is_written_with_fewer_parts) {
  Graph graph;
  Dim n = Dim::symbol("n");
  EXPECT_EQ(graph.not_negative(n - max(0, n - 16)).text(), "min(16,n)");
  EXPECT_EQ(graph.not_negative(n + max(0, 8 - n)).text(), "max(8,n)");
}

// Sizes of memories: each holds what the one before it holds, and some more, up to a number. Whether that is reached
// is open. A proof would take each minimum apart, and those in its operands.
TEST(graph, what_fails_at_some_sizes_is_not_searched_for_a_proof) {
  Graph graph;
  std::clock_t begin = std::clock();
  auto seconds = [&] { return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC; };
  Dim size = Dim::symbol("t");
  for (int i = 0; i < 240; i++) size = min(16, size + Dim::symbol("s"));
  double to_make = seconds();
  EXPECT_EQ(graph.resolved(size), size);
  EXPECT_FALSE(graph.implies(Guard::kLessEqual, size, 15));
  double to_resolve = seconds() - to_make;
  std::printf("240 minima of minima: %.2f ms to make them, %.2f ms to resolve\n", to_make * 1e3, to_resolve * 1e3);
  EXPECT_LT(to_resolve, 100 * to_make + 0.05);
}

}  // namespace rlx
