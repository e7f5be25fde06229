// SPDX-License-Identifier: Apache-2.0
#include "base/status.h"

#include <gtest/gtest.h>

namespace rlx {

static Result<int> half(int x) {
  if (x % 2) return Status(Code::kRange, format("{} is odd", x)).with("got", std::to_string(x));
  return x / 2;
}

static Result<int> quarter(int x) {
  return RLX_TRY(half(RLX_TRY(half(x))));
}

TEST(status, travels_with_its_details) {
  EXPECT_EQ(*quarter(8), 2);
  Result<int> failed = quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.status().code(), Code::kRange);
  EXPECT_EQ(failed.status().message(), "3 is odd");
  EXPECT_EQ(*failed.status().detail("got"), "3");
}

TEST(status, out_of_memory_allocates_nothing_and_is_never_freed) {
  for (int i = 0; i < 3; i++) EXPECT_EQ(Status::no_memory().code(), Code::kNoMemory);
}

}  // namespace rlx
