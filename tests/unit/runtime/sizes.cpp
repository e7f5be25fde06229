// SPDX-License-Identifier: Apache-2.0
// From the dims of inputs to the sizes of symbols.
#include "runtime/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace rlx {

// Inputs of the dims s0 + s1, s1 + s2, ..., and the last symbol alone, in this order or in reverse. A solver that tried
// all dims again after each solution would take minutes.
static void solve_chain(bool reverse) {
  constexpr int64_t kSymbols = 20000;
  auto size_of = [](int64_t i) { return i % 7; };
  std::vector<std::string> names;
  for (int64_t i = 0; i < kSymbols; i++) names.push_back("s" + std::to_string(i));
  std::vector<ValueType> types;
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i + 1 < kSymbols; i++) {
    types.push_back({DType::kF32, {Dim::symbol(names[i]) + Dim::symbol(names[i + 1])}});
    sizes.push_back(size_of(i) + size_of(i + 1));
  }
  types.push_back({DType::kF32, {Dim::symbol(names.back())}});
  sizes.push_back(size_of(kSymbols - 1));
  std::vector<GivenDims> given;
  for (size_t i = 0; i < types.size(); i++) given.push_back({&types[i], {&sizes[i], 1}, names[i]});
  if (reverse) std::reverse(given.begin(), given.end());
  std::vector<std::string_view> symbols(names.begin(), names.end());
  auto solved = solve_symbols(symbols, given);
  ASSERT_TRUE(solved.ok()) << solved.status().message();
  for (int64_t i = 0; i < kSymbols; i++) ASSERT_EQ((*solved)[static_cast<size_t>(i)], size_of(i)) << i;
}

TEST(sizes, chains_of_dims_are_solved_in_either_order) {
  solve_chain(false);
  solve_chain(true);
}

// Of n / 2 = 3 the least size is 6; n + m = 10 and m = 3 say that it is 7.
TEST(sizes, a_dim_with_several_solutions_is_solved_last) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  ValueType half{DType::kF32, {floor_div(n, 2)}}, sum{DType::kF32, {n + m}}, lone{DType::kF32, {m}};
  std::vector<int64_t> sizes{3, 10, 3};
  std::vector<GivenDims> given{
      {&half, {&sizes[0], 1}, "half"}, {&sum, {&sizes[1], 1}, "sum"}, {&lone, {&sizes[2], 1}, "lone"}};
  auto both = solve_symbols(std::vector<std::string_view>{"n", "m"}, given);
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ((*both)[0], 7);
  auto alone = solve_symbols(std::vector<std::string_view>{"n", "m"}, std::span(given).first(1));
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ((*alone)[0], 6);
  EXPECT_EQ((*alone)[1], std::nullopt);
}

TEST(sizes, a_dim_that_falls_with_its_symbol_is_solved) {
  Dim n = Dim::symbol("n");
  auto solved = [&](const Dim& dim, int64_t size) {
    ValueType type{DType::kF32, {dim}};
    GivenDims given{&type, {&size, 1}, "x"};
    auto found = solve_symbols(std::vector<std::string_view>{"n"}, {&given, 1});
    return found.ok() ? (*found)[0].value_or(-1) : -1;
  };
  EXPECT_EQ(solved(max(Dim(20) - Dim(2) * n, Dim(3)), 3), 9);
  EXPECT_EQ(solved(max(Dim(20) - Dim(2) * n, Dim(3)), 8), 6);
  EXPECT_EQ(solved(floor_div(Dim(100), n + Dim(1)), 5), 16);
  EXPECT_EQ(solved(floor_div(Dim(100), n + Dim(1)), 15), -1);
}

// The size of n from inputs that have these dims; -1: none is found, or it does not fit.
static int64_t size_from(std::vector<std::pair<Dim, int64_t>> inputs, std::vector<Interval> ranges = {}) {
  std::vector<ValueType> types;
  for (const auto& [dim, size] : inputs) types.push_back({DType::kF32, {dim}});
  std::vector<GivenDims> given;
  for (size_t i = 0; i < inputs.size(); i++) given.push_back({&types[i], {&inputs[i].second, 1}, "x"});
  auto found = solve_symbols(std::vector<std::string_view>{"n"}, given, ranges);
  return found.ok() ? (*found)[0].value_or(-1) : -1;
}

TEST(sizes, of_several_that_fit_one_dim_others_choose) {
  Dim n = Dim::symbol("n");
  Dim half = floor_div(n, 2), up = floor_div(n + 1, 2), rest = n - 4 * floor_div(n, 4);
  for (int64_t size : {0, 1, 2, 3, 5, 6, 7, 1000, 1001}) {
    EXPECT_EQ(size_from({{half, size / 2}, {n * n, size * size}}), size);
    EXPECT_EQ(size_from({{n * n, size * size}, {half, size / 2}}), size);
    EXPECT_EQ(size_from({{half, size / 2}, {up, (size + 1) / 2}}), size);
    EXPECT_EQ(size_from({{up, (size + 1) / 2}, {half, size / 2}}), size);
    EXPECT_EQ(size_from({{floor_div(n, 4), size / 4}, {rest, size % 4}}), size) << "the rest neither rises nor falls";
    EXPECT_EQ(size_from({{rest, size % 4}, {floor_div(n, 4), size / 4}}), size);
    int64_t least = size == 1 ? 0 : size;  // 0 fits as well
    EXPECT_EQ(size_from({{half, size / 2}, {half * (n - half), size / 2 * (size - size / 2)}}), least);
  }
  EXPECT_EQ(size_from({{up, 4}}), 7) << "the least";
  EXPECT_EQ(size_from({{up, 4}}, {{8, 20}}), 8) << "the least of its range";
  EXPECT_EQ(size_from({{up, 4}}, {{9, 20}}), 7) << "none is of its range: a check says so";
  EXPECT_EQ(size_from({{half, 3}, {up, 5}}), -1);
  EXPECT_EQ(size_from({{half, 3}, {n * n, 50}}), -1);
  EXPECT_EQ(size_from({{n - half, 100000}}), 199999);
  EXPECT_EQ(size_from({{floor_div(100, n), 5}}), 17) << "there is no size 0";
  EXPECT_EQ(size_from({{rest, 3}, {n - 7 * floor_div(n, 7), 5}}), 19);
}

TEST(sizes, a_dim_that_any_size_fits_decides_none_alone) {
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
  ValueType product{DType::kF32, {n * m}}, lone{DType::kF32, {m}};
  int64_t zero = 0;
  std::vector<GivenDims> given{{&product, {&zero, 1}, "x"}, {&lone, {&zero, 1}, "y"}};
  std::vector<Interval> ranges{{2, 9}, {0, 9}};
  auto found = solve_symbols(std::vector<std::string_view>{"n", "m"}, given, ranges);
  ASSERT_TRUE(found.ok()) << found.status().message();
  EXPECT_EQ((*found)[0], 2);
}

}  // namespace rlx
