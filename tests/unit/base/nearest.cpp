// SPDX-License-Identifier: Apache-2.0
// Which known word a message suggests for an unknown one.
#include "base/nearest.h"

#include <gtest/gtest.h>

namespace rlx {

TEST(nearest, near_words_are_suggested_and_far_ones_are_not) {
  static constexpr std::string_view kKnown[] = {"add", "sub", "softmax", "axis", "lt", "math"};
  EXPECT_EQ(did_you_mean("sofmax", kKnown), " (did you mean 'softmax'?)");
  EXPECT_EQ(did_you_mean("sotfamx", kKnown), " (did you mean 'softmax'?)") << "two exchanges";
  EXPECT_EQ(did_you_mean("axsi", kKnown), " (did you mean 'axis'?)") << "one exchange";
  EXPECT_EQ(did_you_mean("ad", kKnown), " (did you mean 'add'?)");
  for (const char* far : {"batch", "lstm", "greater", "x", "", "addition"})
    EXPECT_EQ(did_you_mean(far, kKnown), "") << far;
}

}  // namespace rlx
