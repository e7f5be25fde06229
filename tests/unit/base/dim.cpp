// SPDX-License-Identifier: Apache-2.0
// Sizes as expressions: one size has one form.
#include "base/dim.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/dim_memo.h"

namespace rlx {

TEST(dim, a_quotient_has_one_form) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  EXPECT_EQ(floor_div(n - 1, 2) + 1, floor_div(n + 1, 2));
  EXPECT_EQ(floor_div(n - 3, 2) + 1, floor_div(n - 1, 2));
  EXPECT_EQ(floor_div(4 * n + 7, 4), n + 1);
  EXPECT_EQ(floor_div(4 * n + m + 7, 4), n + 1 + floor_div(m + 3, 4));
  EXPECT_EQ(floor_div(n * m * 6 - 1, 3), 2 * n * m - 1);
  EXPECT_NE(floor_div(n + 1, 2), floor_div(n, 2));
  EXPECT_EQ(floor_div(2 * n + m, n).text(), floor_div(2 * n + m, n).text());
}

// The terms of (n - k)^9 pass 2^62 long before their sum does.
TEST(dim, terms_may_be_larger_than_their_sum) {
  Dim power = 1;
  for (int i = 0; i < 9; i++) power = power * (Dim::symbol("n") - Dim::symbol("k"));
  auto at = [&](int64_t n, int64_t k) {
    return evaluate(power, [&](std::string_view name) { return std::optional(name == "n" ? n : k); });
  };
  for (int64_t k : {1, 60, 130, 2000}) EXPECT_EQ(*at(k + 3, k), 19683) << k;
  auto beyond = at(int64_t{1} << 40, 1);
  EXPECT_FALSE(beyond.ok() && *beyond < Interval::kUnbounded);
}

TEST(dim, a_quotient_rounds_down_at_every_size) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  for (int64_t divisor : {2, 3, 7})
    for (int64_t shift = -9; shift <= 9; shift++)
      for (int64_t factor : {-3, -1, 0, 1, 2, 7})
        for (int64_t size = 0; size < 6; size++) {
          Dim dim = floor_div(factor * n + 2 * m + shift, divisor);
          SymbolLookup sizes = [&](std::string_view name) { return std::optional<int64_t>(name == "n" ? size : 3); };
          double exact = static_cast<double>(factor * size + 6 + shift) / static_cast<double>(divisor);
          ASSERT_EQ(*evaluate(dim, sizes), static_cast<int64_t>(std::floor(exact))) << dim.text();
        }
}

// Where a clamp has a number as its limit, the quotient is taken within it.
TEST(dim, a_quotient_of_a_clamp_is_a_clamp_of_quotients) {
  Dim n = Dim::symbol("n");
  EXPECT_EQ(floor_div(max(0, 2 * n - 1) + 1, 2), max(0, n));
  EXPECT_EQ(floor_div(7 - 3 * min(4, n), 2), 3 + max(-6, floor_div(1 - 3 * n, 2)));
  EXPECT_EQ(floor_div(max(0, min(n, Dim::symbol("m"))), 2).text(), "((max(0,min(m,n)))/2)");
  // A product saturates long before its sizes do: then the clamp is known, and its operand is not.
  Dim product = n * Dim::symbol("m") * Dim::symbol("k"), clamped = floor_div(min(10, product) + 1, 2);
  EXPECT_EQ(*evaluate(clamped, [](std::string_view) { return std::optional<int64_t>(2000000); }), 5) << clamped.text();
  auto n_of = [](int64_t size) { return [=](std::string_view) { return std::optional(size); }; };
  EXPECT_EQ(*evaluate(floor_div(min(10, 1048575 * n + 1), 2), n_of(kLargestSize)), 5);
  Dim half = floor_div(n * Dim::symbol("m") + 1, 2);
  EXPECT_EQ(*evaluate(floor_div(min(10, 17 * half), 2), n_of(kLargestSymbol)), 5);
  // 3 * 2^61 saturates.
  EXPECT_EQ(floor_div(3 * max(int64_t{1} << 61, n), 2).text(), "((3*max(2305843009213693952,n))/2)");
  for (int64_t divisor : {2, 3, 7})
    for (int64_t shift = -4; shift <= 4; shift++)
      for (int64_t factor : {-3, -1, 1, 2})
        for (int64_t size = 0; size < 9; size++) {
          SymbolLookup sizes = [&](std::string_view) { return std::optional(size); };
          auto expect = [&](const Dim& found, int64_t clamped) {
            double exact = static_cast<double>(factor * clamped + shift) / static_cast<double>(divisor);
            ASSERT_EQ(*evaluate(found, sizes), static_cast<int64_t>(std::floor(exact))) << found.text();
          };
          expect(floor_div(factor * max(3, n) + shift, divisor), std::max<int64_t>(3, size));
          expect(floor_div(factor * min(2 * n, 5) + shift, divisor), std::min<int64_t>(2 * size, 5));
        }
}

static Dim dim(std::string_view text) {
  auto parsed = parse_dim(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Dim(-1);
}

static Interval range(std::string_view text, Interval of_symbols = {}) {
  return range_of(dim(text), [&](std::string_view) { return of_symbols; });
}

// No run divides by 0.
TEST(dim, a_quotient_is_bounded_though_its_divisor_may_be_0) {
  auto range_at = [](Interval n, Interval m) {
    return range_of(dim("n/m"), [=](std::string_view name) { return name == "n" ? n : m; });
  };
  EXPECT_EQ(range_at({0, 100}, {0, 7}), (Interval{0, 100}));
  EXPECT_EQ(range_at({5, 100}, {-3, 0}), (Interval{-100, -2}));
  EXPECT_EQ(range_at({-9, 100}, {-2, 3}), (Interval{-100, 100}));
  EXPECT_EQ(range_at({0, 100}, {-Interval::kUnbounded, 0}), (Interval{-100, 0}));
  EXPECT_EQ(range_at({4, 4}, {0, 0}), (Interval{0, 0})) << "no run has this size";
}

TEST(dim, the_larger_and_the_smaller_of_a_pair_come_to_the_pair) {
  EXPECT_EQ(dim("max(a,b) + min(a,b)").text(), "a + b");
  EXPECT_EQ(dim("max(0,n - k) + min(k,n)").text(), "n");
  EXPECT_EQ(dim("3*max(n,4) + 3*min(4,n) + 1").text(), "3*n + 13");
  EXPECT_EQ(dim("max(n + 1,k + 1) - max(k,n)").text(), "1");
  EXPECT_EQ(dim("min(n,7) - min(n - 2,5)").text(), "2");
  EXPECT_EQ(dim("max(0,n - k) - max(0,k - n)").text(), "-k + n");
  EXPECT_EQ(dim("max(a,b) + 2*min(a,b)"), dim("2*min(a,b) + max(a,b)"));
  EXPECT_NE(dim("max(a,b) - min(a,b)").text(), "0");
}

// Slices of slices.
TEST(dim, an_extreme_of_an_extreme_and_numbers_is_one) {
  Dim m = Dim::symbol("m");
  EXPECT_EQ(max(0, max(0, m - 1) - 1), max(0, m - 2));
  EXPECT_EQ(max(3, max(0, m - 1)), max(3, m - 1));
  EXPECT_EQ(max(0, max(5, m) - 2), max(3, m - 2));
  EXPECT_EQ(min(min(m, 3) + 1, 9), min(m + 1, 4));
  EXPECT_NE(max(0, min(3, m) - 1), max(0, m - 1));
  EXPECT_NE(max(0, 2 * max(0, m - 1) - 1), max(0, 2 * m - 3));
  Dim end = m;
  for (int i = 0; i < 2000; i++) end = max(0, end - 1);
  EXPECT_EQ(end, max(0, m - 2000));
}

TEST(dim, an_operand_of_an_extreme_cancels_with_the_terms_beside_it) {
  auto expect_range = [](std::string_view text, int64_t lo, int64_t hi) {
    Interval found = range(text, {0, 9});
    EXPECT_EQ(found.lo, lo) << text;
    EXPECT_EQ(found.hi, hi) << text;
  };
  expect_range("m - min(1,m - 1)", 1, 8);  // max(m - 1, 1)
  expect_range("max(k,m) - m", 0, 9);
  expect_range("m - max(k,m)", -9, 0);
  expect_range("min(k,m) - 2*m", -18, 0);
  expect_range("k*m - max(5,k*m)", -5, 0);
  expect_range("m*max(0,k - 3) - min(4,m*max(0,k - 3))", 0, 50);
}

TEST(dim, a_remainder_is_less_than_its_divisor) {
  Interval r = range("n - 4*(n/4)");
  EXPECT_EQ(r.lo, 0);
  EXPECT_EQ(r.hi, 3);
  r = range("10 + 8*(n/4) - 2*n");
  EXPECT_EQ(r.lo, 4);
  EXPECT_EQ(r.hi, 10);
  r = range("2 - (2/max(1,n))*max(1,n)");
  EXPECT_EQ(r.lo, 0);
  r = range("k - (n + 1)*(k/(n + 1))", {0, 6});
  EXPECT_EQ(r.lo, 0);
  EXPECT_EQ(r.hi, 6);
}

// Each of them looked at beside all others would take 20! steps.
TEST(dim, many_remainders_take_little_time) {
  Dim sum = 0;
  for (int i = 0; i < 20; i++) {
    Dim n = Dim::symbol("n" + std::to_string(i));
    sum += n - 4 * floor_div(n, 4);
  }
  Interval range = range_of(sum, [](std::string_view) { return Interval(); });
  EXPECT_LE(range.lo, 0);
  EXPECT_GE(range.hi, 60);
}

// The difference of two of them asks for those of their operands, and so on: 2^40 of them, if none is kept.
TEST(dim, extremes_of_extremes_take_little_time) {
  Dim a = Dim::symbol("a0"), b = Dim::symbol("b0");
  for (int i = 1; i < 40; i++) {
    auto is_some = [&](const char* name) { return is_less(Dim::symbol(name + std::to_string(i)), i); };
    a = min(a, is_some("a")), b = min(b, is_some("b"));
  }
  EXPECT_FALSE((a - b).is_literal());
  EXPECT_EQ(max(a, b) + min(a, b), a + b);
}

// Multiplied out, the last of these would have 40^6 terms.
TEST(dim, a_product_too_long_to_multiply_out_stays_one) {
  Dim sum = 0;
  for (int i = 0; i < 40; i++) sum += Dim::symbol("n" + std::to_string(i));
  Dim product = 1;
  for (int i = 0; i < 6; i++) product *= sum;
  EXPECT_LE(product.parts(), 300);
  auto twos = [](std::string_view) { return std::optional<int64_t>(2); };
  EXPECT_EQ(*evaluate(product, twos), int64_t{80} * 80 * 80 * 80 * 80 * 80);
  EXPECT_EQ(*parse_dim(product.text()), product);
  EXPECT_EQ(range_of(product,
                     [](std::string_view) {
                       return Interval{0, 2};
                     })
                .hi,
            int64_t{80} * 80 * 80 * 80 * 80 * 80);
  EXPECT_TRUE((product - product).is(0));
  EXPECT_EQ(sum * Dim(2) - sum, sum);
  Dim at_two = substitute(product, [](std::string_view) { return std::optional<Dim>(2); });
  EXPECT_TRUE(at_two.is(int64_t{80} * 80 * 80 * 80 * 80 * 80)) << at_two.text();
  auto large = [](std::string_view) { return std::optional<int64_t>(int64_t{1} << 30); };
  EXPECT_FALSE(evaluate(product, large).ok());
}

// Multiplied out, the cube has the term 2^63, and n^3 alone is as large.
TEST(dim, a_product_of_terms_too_large_to_multiply_out_stays_one) {
  constexpr int64_t kMany = int64_t{1} << 21;
  Dim rest = Dim::symbol("n") - Dim(kMany), cube = rest * rest * rest;
  auto three_more = [](std::string_view) { return std::optional(kMany + 3); };
  EXPECT_EQ(*evaluate(cube, three_more), 27);
  EXPECT_EQ(*parse_dim(cube.text()), cube);
  Interval range = range_of(cube, [](std::string_view) { return Interval{kMany, kMany + 3}; });
  EXPECT_LE(range.lo, 0);
  EXPECT_GE(range.hi, 27);
}

// n^3 and its like are 2^63 and more here, so ends of ranges saturate, although the whole is 27 at most.
TEST(dim, an_end_that_has_saturated_is_no_bound) {
  constexpr int64_t kMany = int64_t{1} << 21;
  Dim rest = Dim::symbol("n") - Dim::symbol("m");
  auto ranges = [](std::string_view name) { return name == "n" ? Interval{kMany, kMany + 3} : Interval{kMany, kMany}; };
  Interval range = range_of(rest * rest * rest, ranges);
  EXPECT_LE(range.lo, 0);
  EXPECT_GE(range.hi, 27);
  range = range_of(floor_div(rest * rest * rest, Dim::symbol("n")), ranges);
  EXPECT_LE(range.lo, 0);
  EXPECT_GE(range.hi, 0);
}

// The quotient of 2^90, which is cut to 2^62, would be 2^22 instead of 2^50.
TEST(dim, a_quotient_of_what_has_saturated_is_an_error) {
  auto sizes = [](std::string_view) { return std::optional(int64_t{1} << 30); };
  auto quotient = evaluate(*parse_dim("(a*b*c)/(2*d + 1)"), sizes);
  EXPECT_EQ(quotient.status().code(), Code::kRange);
}

TEST(dim, a_square_of_a_square_and_so_on_takes_little_time) {
  Dim square = Dim::symbol("n");
  for (int i = 0; i < 60; i++) square *= square;
  EXPECT_GT(square.parts(), Dim::kMaxParts);
  EXPECT_FALSE(check_parts(std::span(&square, 1)).ok());
}

TEST(dim, a_number_divides_sums_of_any_length) {
  Dim sum = 7;
  for (int i = 0; i < 100; i++) sum += 3 * (i + 1) * Dim::symbol("n" + std::to_string(i));
  EXPECT_EQ(floor_div(sum, 1), sum);
  EXPECT_EQ(exact_div(2 * sum, 2), sum);
  EXPECT_EQ(exact_div(sum, -1), -1 * sum);
  EXPECT_EQ(exact_div(sum, 3), std::nullopt);
  EXPECT_EQ(floor_div(sum, 3), exact_div(sum - 7, 3).value() + 2);
}

// A coefficient beyond 2^62 is exact, too: what is added may be subtracted again.
TEST(dim, a_coefficient_is_exact_however_large_it_becomes) {
  Dim large = (int64_t{1} << 61) * Dim::symbol("n"), sum = large + large + large;
  EXPECT_EQ(sum - large - large, large);
  EXPECT_EQ(sum + large, large + sum);
  EXPECT_EQ(*parse_dim(sum.text()), sum);
  EXPECT_TRUE((sum - sum).is(0));
}

TEST(dim, a_number_too_large_for_a_sum_stands_alone) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(parse_dim("9223372036854775807")->literal(), kLargest);
  EXPECT_EQ(parse_dim(" -9223372036854775807 ")->literal(), -kLargest);
  EXPECT_EQ(parse_dim("a + 4611686018427387904")->text(), "a + 4611686018427387904");
  EXPECT_EQ(parse_dim("a + 9223372036854775807").status().message(),
            "in the size \"a + 9223372036854775807\", column 5: expected a number of at most 2^62");
  for (const char* text : {"9223372036854775807+a", "9223372036854775807 - 1", "max(a, 9223372036854775807)",
                           "4611686018427387905*2", "-4611686018427387905/2"})
    EXPECT_FALSE(parse_dim(text).ok()) << text;
}

TEST(dim, numbers_in_a_sum_are_ones_that_read_back) {
  Dim n = Dim::symbol("n");
  for (const Dim& dim : {n + INT64_MIN, n - INT64_MAX, max(n, INT64_MIN), INT64_MIN * n})
    EXPECT_TRUE(parse_dim(dim.text()).ok()) << dim.text();
  EXPECT_TRUE(floor_div(Dim(INT64_MIN), -1).is_literal());
  EXPECT_TRUE(exact_div(n + INT64_MIN, -1).has_value());
}

static int lookups_for_range(const Dim& dim) {
  int lookups = 0;
  range_of(dim, [&](std::string_view) {
    lookups++;
    return Interval{0, 9};
  });
  return lookups;
}

// The sizes of slices that are joined. To look at each operand of a min beside all others is worth it only where
// something may cancel, and then only for few of many.
TEST(dim, ranges_of_long_sums_take_linear_time) {
  constexpr int kTerms = 400;
  Dim sum = Dim(0) - Dim::symbol("t"), of_one = sum;
  for (int i = 0; i < kTerms; i++) {
    Dim a = Dim::symbol("a" + std::to_string(i));
    sum += min(a, Dim::symbol("b" + std::to_string(i)));
    of_one += min(a, Dim::symbol("n"));
  }
  EXPECT_LE(lookups_for_range(sum), 2 * kTerms + 1);
  EXPECT_LE(lookups_for_range(of_one), 20 * kTerms);
  Interval range = range_of(sum, [](std::string_view) { return Interval{1, 9}; });
  EXPECT_EQ(range, (Interval{kTerms - 9, 9 * kTerms - 1}));
}

TEST(dim, a_few_extremes_that_cancel_are_found_among_many_that_do_not) {
  Dim n = Dim::symbol("n"), sum = min(n, Dim::symbol("m")) - n;
  for (int i = 0; i < 30; i++) sum += min(Dim::symbol("a" + std::to_string(i)), Dim::symbol("b" + std::to_string(i)));
  Interval range = range_of(sum, [](std::string_view name) {
    return name == "n" || name == "m" ? Interval{0, 9} : Interval{2, 3};
  });
  EXPECT_EQ(range, (Interval{60 - 9, 90}));
}

// Terms that rise with the same symbol have their least values at the same size, so none is examined beside the others.
TEST(dim, an_extreme_that_cancels_is_found_among_those_that_move_the_same_way) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m"), sum = min(Dim::symbol("k"), m) - m;
  for (int i = 0; i < 40; i++) sum += max(0, min(n, Dim::symbol("a" + std::to_string(i))) - 1);
  Interval range = range_of(sum, [](std::string_view) { return Interval{0, 9}; });
  EXPECT_EQ(range, (Interval{-9, 40 * 8}));
}

TEST(dim, what_no_replacement_changes_is_not_built_again) {
  Dim dim = *parse_dim("n*m + min(n,4) - max(k,(m/3))");
  auto none = [](std::string_view) { return std::optional<Dim>(); };
  EXPECT_EQ(substitute(dim, none).polynomial(), dim.polynomial());
  auto keep = [](Atom::Kind, const Dim&, const Dim&) { return std::optional<Dim>(); };
  EXPECT_EQ(rewritten(dim, keep).polynomial(), dim.polynomial());
  auto k_is_5 = [](std::string_view name) { return name == "k" ? std::optional<Dim>(5) : std::nullopt; };
  EXPECT_EQ(substitute(dim, k_is_5), *parse_dim("n*m + min(n,4) - max(5,(m/3))"));
}

// Each of a chain of slices ends where its own symbol says: what all of them nest is examined once.
TEST(dim, ranges_of_nested_sizes_take_linear_time) {
  constexpr int kNested = 200;
  Dim n = Dim::symbol("n"), nested = n;
  for (int i = 0; i < kNested; i++) nested = min(nested, Dim::symbol("m" + std::to_string(i)));
  int lookups = 0;
  Interval range = range_of(nested - n, [&](std::string_view) {
    lookups++;
    return Interval{0, 9};
  });
  EXPECT_EQ(range.lo, -9);
  EXPECT_LT(lookups, 3 * kNested);
}

TEST(dim, ranges_of_parts_are_known_to_the_whole) {
  constexpr int kNested = 200;
  int lookups = 0;
  Ranges ranges([&](std::string_view) {
    lookups++;
    return Interval{2, 9};
  });
  Dim size = Dim::symbol("n");
  for (int i = 0; i < kNested; i++) {
    Dim own = Dim::symbol("s" + std::to_string(i));
    size = own + max(0, min(size, own) - 1);
    EXPECT_EQ(ranges.of(size), (Interval{3, 17}));
  }
  EXPECT_LT(lookups, 20 * kNested);
}

TEST(dim, values_of_parts_are_known_to_the_whole) {
  constexpr int kNested = 200;
  int lookups = 0;
  KnownValues known;
  Dim size = Dim::symbol("n");
  for (int i = 0; i < kNested; i++) {
    size = min(size + 1, Dim::symbol("s" + std::to_string(i)));
    auto value = evaluate(
        size, [&](std::string_view) { return lookups++, std::optional<int64_t>(500); }, known);
    EXPECT_EQ(value.ok() ? *value : -1, 500);
  }
  EXPECT_LT(lookups, 2 * kNested + 2);
}

}  // namespace rlx
