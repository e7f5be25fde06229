// SPDX-License-Identifier: Apache-2.0
// What is said of a dim, against its values.
#include "base/dim_trend.h"

#include <gtest/gtest.h>

namespace rlx {

static Trend trend(const std::string& text) {
  return trend_of(*parse_dim(text), "n", [](std::string_view name) {
    return name == "n" ? Interval{1, kLargestSymbol} : name == "m" ? Interval{3, 3} : Interval{-2, -2};
  });
}

TEST(dim_trend, says_how_a_dim_moves) {
  for (const char* text : {"n", "2*n-9", "n*n*m", "n/2", "(n*n+n)/3", "min(n,9)", "max(m,n)+n", "m*n", "k*k*n",
                           "5-100/n", "max(0,k-n)*k", "k/n"})
    EXPECT_EQ(trend(text), Trend::kRises) << text;
  for (const char* text : {"7-n", "k*n", "100/n", "100/(n*n+m)", "max(20-2*n,3)", "min(m,9-n)*m", "(9-n)/m"})
    EXPECT_EQ(trend(text), Trend::kFalls) << text;
  for (const char* text : {"m", "7", "m*k+1", "m/2"}) EXPECT_EQ(trend(text), Trend::kSteady) << text;
  for (const char* text : {"n-4*(n/4)", "n*n-9*n", "(n-9)*(n/2)", "100/(n-9)", "n/(n/2+1)", "min(n,9-n)"})
    EXPECT_EQ(trend(text), Trend::kUnclear) << text;
}

TEST(dim_trend, says_that_all_values_keep_to_it) {
  for (const char* text : {"n", "2*n-9", "n*n*3", "n/2", "(n*n+n)/3", "min(n,9)", "5-100/n", "7-n", "100/n",
                           "100/(n*n+3)", "max(20-2*n,3)", "(0-2)/n", "(9-n)/3", "max(0,5-n)*(0-2)"}) {
    Dim dim = *parse_dim(text);
    Trend found = trend(text);
    for (int64_t n = 1; n < 200; n++) {
      auto at = [&](int64_t size) { return *evaluate(dim, [&](std::string_view) { return std::optional(size); }); };
      EXPECT_TRUE(found == Trend::kRises ? at(n) <= at(n + 1) : found == Trend::kFalls && at(n) >= at(n + 1)) << text;
    }
  }
}

TEST(dim_trend, tells_linear_dims) {
  auto is_linear = [](const char* text) { return is_linear_in(*parse_dim(text), "n"); };
  for (const char* text : {"n", "3", "2*n+m", "m*n-m*m", "m/2+n", "(m/2)*n"}) EXPECT_TRUE(is_linear(text)) << text;
  for (const char* text : {"n*n", "n/2", "(n+1)/2", "n*(n/2)", "max(n,m)", "m/n"})
    EXPECT_FALSE(is_linear(text)) << text;
}

}  // namespace rlx
