// SPDX-License-Identifier: Apache-2.0
// Sums with max and min, written with fewer parts: the same at all sizes.
#include "base/dim_gathered.h"

#include <gtest/gtest.h>

namespace rlx {

static Dim dim(std::string_view text) {
  auto parsed = parse_dim(text);
  EXPECT_TRUE(parsed.ok()) << text;
  return parsed.ok() ? *parsed : Dim(-1);
}

TEST(dim_gathered, what_cancels_with_an_operand_moves_into_the_extreme) {
  EXPECT_EQ(gathered(dim("n - max(0,n - 16)")).text(), "min(16,n)");
  EXPECT_EQ(gathered(dim("n + max(0,8 - n)")).text(), "max(8,n)");
  EXPECT_EQ(gathered(dim("n - min(5,n)")).text(), "max(0,n - 5)");
  EXPECT_EQ(gathered(dim("n + m + 1 - max(0,n + m - 15)")).text(), "min(16,m + n + 1)");
  EXPECT_EQ(gathered(dim("k + n - max(0,n - 16)")).text(), "k + min(16,n)");
  EXPECT_EQ(gathered(dim("n + m - max(0,n - 4) - max(0,m - 5)")).text(), "min(4,n) + min(5,m)");
  EXPECT_EQ(gathered(dim("n*m - max(k,n*m)")).text(), "min(0,m*n - k)");
  EXPECT_EQ(gathered(dim("min(n,4) - max(0,min(n,4) - 2)")).text(), "min(2,n)");
}

TEST(dim_gathered, what_does_not_cancel_stays) {
  for (const char* text : {"7", "n", "n + 1", "max(0,n - 16)", "-max(0,n - 16)", "2*n - max(0,n - 16)", "m - max(0,n)",
                           "2*n - 2*max(0,n - 16)", "3 + max(2,n)", "n*max(0,n - 1)"})
    EXPECT_EQ(gathered(dim(text)), dim(text)) << text;
}

TEST(dim_gathered, a_size_is_the_same_before_and_after) {
  for (const char* text :
       {"n - max(0,n - 4)", "n + m - max(0,n - 4) - max(m,n)", "n - 1 - min(m,n + k)", "max(n,m) - max(0,max(n,m) - k)",
        "m - n + max(n - m,k) + min(n,3)", "n/2 - max(0,n/2 - 1) + min(n,k*m) - k*m"}) {
    Dim before = dim(text), after = gathered(before);
    EXPECT_LT(after.parts(), before.parts()) << text;
    EXPECT_EQ(*parse_dim(after.text()), after);
    for (int64_t n = 0; n < 9; n++)
      for (int64_t m = 0; m < 9; m++)
        for (int64_t k = 0; k < 9; k++) {
          SymbolLookup sizes = [&](std::string_view name) {
            return std::optional(name == "n" ? n : name == "m" ? m : k);
          };
          ASSERT_EQ(*evaluate(before, sizes), *evaluate(after, sizes)) << text << " and " << after.text();
        }
  }
}

}  // namespace rlx
