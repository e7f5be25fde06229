// SPDX-License-Identifier: Apache-2.0
// The one meaning of an axis and the one rule of broadcasting.
#include <gtest/gtest.h>

#include "base/dim.h"

namespace rlx {

static constexpr auto never = [](const Dim&, const Dim&) -> Result<Dim> { return Status(Code::kShape, "differ"); };
static constexpr auto first = [](const Dim& a, const Dim&) -> Result<Dim> { return a; };

TEST(dim_axes, count_from_the_end_below_0) {
  EXPECT_EQ(*checked_axis(1, 3), 1);
  EXPECT_EQ(*checked_axis(-1, 3), 2);
  EXPECT_EQ(*checked_axis(-3, 3), 0);
  for (int64_t axis : {int64_t{3}, int64_t{-4}, INT64_MAX, INT64_MIN})
    EXPECT_EQ(checked_axis(axis, 3).status().code(), Code::kRange);
  EXPECT_EQ(checked_axis(0, 0).status().code(), Code::kRange);
}

TEST(dim_axes, a_literal_1_broadcasts_and_a_symbol_is_never_1) {
  Dim n = Dim::symbol("n"), k = Dim::symbol("k");
  using Sizes = std::vector<Dim>;
  EXPECT_EQ(*broadcast(Sizes{n, 1}, Sizes{1, 4}, never), (Sizes{n, 4}));
  EXPECT_EQ(*broadcast(Sizes{4}, Sizes{n, 1}, never), (Sizes{n, 4}));
  EXPECT_EQ(*broadcast(Sizes{0}, Sizes{1}, never), (Sizes{0}));
  EXPECT_FALSE(broadcast(Sizes{n}, Sizes{k}, never).ok());
  EXPECT_EQ(*broadcast(Sizes{n}, Sizes{k}, first), (Sizes{n}));
}

TEST(dim_axes, only_one_side_stretches) {
  Dim n = Dim::symbol("n");
  using Sizes = std::vector<Dim>;
  EXPECT_EQ(*stretch(Sizes{1, 4}, Sizes{2, n, 4}, never), (Sizes{2, n, 4}));
  EXPECT_FALSE(stretch(Sizes{4}, Sizes{1}, never).ok());
  EXPECT_FALSE(stretch(Sizes{1, 4}, Sizes{4}, first).ok());
  EXPECT_EQ(*stretch(Sizes{n}, Sizes{3}, first), (Sizes{3}));
}

}  // namespace rlx
