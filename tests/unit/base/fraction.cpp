// SPDX-License-Identifier: Apache-2.0
// The fractions that numbers were rounded from, and those that they are.
#include "base/fraction.h"

#include <gtest/gtest.h>

#include <limits>

namespace rlx {

static std::string text(const std::optional<Fraction>& fraction) {
  return fraction ? std::to_string(fraction->numerator) + "/" + std::to_string(fraction->denominator) : "none";
}

TEST(fraction, the_simplest_one_that_rounds_to_a_number) {
  EXPECT_EQ(text(simple_fraction_of(0.7f)), "7/10");
  EXPECT_EQ(text(simple_fraction_of(1.3)), "13/10");
  EXPECT_EQ(text(simple_fraction_of(2.0f)), "2/1");
  EXPECT_EQ(text(simple_fraction_of(0.7071068f)), "none");
  EXPECT_EQ(text(simple_fraction_of(1e-17)), "none");
}

TEST(fraction, the_one_that_a_number_is) {
  EXPECT_EQ(text(exact_fraction_of(0.7f)), "11744051/16777216");
  EXPECT_EQ(text(exact_fraction_of(2.5)), "5/2");
  EXPECT_EQ(text(exact_fraction_of(0x1p32)), "4294967296/1");
  EXPECT_EQ(text(exact_fraction_of(0x1p-32)), "1/4294967296");
  for (double x : {0x1p33, 0x1p-33, 0.7, 1e300, 1e-300, std::numeric_limits<double>::infinity(),
                   std::numeric_limits<double>::quiet_NaN()})
    EXPECT_EQ(text(exact_fraction_of(x)), "none") << x;
}

}  // namespace rlx
