// SPDX-License-Identifier: Apache-2.0
#include "base/check_size.h"

#include <gtest/gtest.h>

#include <limits>

namespace rlx {

TEST(check_size, a_size_above_all_sizes_is_told_the_limit) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const char* told =
      "the size 'k' = 9223372036854775807 is above 1073741823, the limit of a size without a declared maximum";
  EXPECT_EQ(check_size("k", kLargest, {}).message(), told);
  EXPECT_EQ(check_upper_size("k", kLargest, {}).message(), told);
  EXPECT_TRUE(check_size("k", int64_t{1} << 40, {}).ok());
  EXPECT_NE(check_upper_size("k", int64_t{1} << 40, {}).message().find("= 1099511627776 is above 1073741823"),
            std::string_view::npos);
  EXPECT_EQ(check_size("k", -1, {}).message(), "the size 'k' = -1 is outside its range [0, inf)");
  EXPECT_EQ(check_size("k", kLargest, {1, 4}).message(),
            "the size 'k' = 9223372036854775807 is outside its range [1, 4]");
}

}  // namespace rlx
