// SPDX-License-Identifier: Apache-2.0
// How a failure travels, and that being out of memory allocates nothing.
#include "base/status.h"

#include <gtest/gtest.h>

#include <memory>

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

// Nothing that has a name is copied or moved from, unless it failed.
static Status first_failure(const Status& status, Result<std::unique_ptr<int>>& result) {
  RLX_TRY(status);
  RLX_TRY(result);
  return Status(Code::kState, std::to_string(**result));
}

TEST(status, is_tried_where_it_stands) {
  Status good, bad(Code::kData, "bad");
  Result<std::unique_ptr<int>> seven(std::make_unique<int>(7)), none(bad);
  EXPECT_EQ(first_failure(good, seven).message(), "7");
  EXPECT_EQ(first_failure(bad, seven).message(), "bad");
  EXPECT_EQ(first_failure(good, none).message(), "bad");
  EXPECT_EQ(bad.message(), "bad");
  EXPECT_EQ(none.status().message(), "bad");
}

TEST(status, out_of_memory_allocates_nothing_and_is_never_freed) {
  for (int i = 0; i < 3; i++) EXPECT_EQ(Status::no_memory().code(), Code::kNoMemory);
}

}  // namespace rlx
