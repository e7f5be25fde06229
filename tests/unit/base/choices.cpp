// SPDX-License-Identifier: Apache-2.0
// Lists of words that stand for the values of an enum.
#include "base/choices.h"

#include <gtest/gtest.h>

#include "plan/kernel.h"

namespace rlx {

TEST(choices, are_whole_words_in_the_order_of_the_values) {
  EXPECT_EQ(find_choice<Bounds>("error"), Bounds::kError);
  EXPECT_EQ(find_choice<Bounds>("drop"), Bounds::kDrop);
  EXPECT_EQ(find_choice<Dispatch>("common"), Dispatch::kCommon);
  for (const char* wrong : {"", "err", "errors", "error|clamp", "clamp|", "|"})
    EXPECT_FALSE(find_choice<Bounds>(wrong)) << wrong;
}

}  // namespace rlx
