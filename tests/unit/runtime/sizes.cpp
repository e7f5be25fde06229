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

}  // namespace rlx
