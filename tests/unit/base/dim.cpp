// SPDX-License-Identifier: Apache-2.0
// Sizes as expressions: one size has one form.
#include "base/dim.h"

#include <gtest/gtest.h>

#include <cmath>

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

}  // namespace rlx
