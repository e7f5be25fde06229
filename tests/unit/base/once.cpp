// SPDX-License-Identifier: Apache-2.0
#include "base/once.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <vector>

namespace rlx {

TEST(once, what_throws_is_tried_again_and_what_is_done_is_not) {
  Once once;
  int calls = 0;
  auto work = [&] {
    if (++calls == 1) throw std::runtime_error("the first");
  };
  EXPECT_THROW(once.call(work), std::runtime_error);
  once.call(work);
  once.call(work);
  EXPECT_EQ(calls, 2);
}

TEST(once, threads_that_come_later_see_what_was_done) {
  Once once;
  int value = 0;
  std::vector<int> seen(4, 0);
  std::vector<std::thread> threads;
  for (int& it : seen)
    threads.emplace_back([&] {
      once.call([&] { value++; });
      it = value;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, std::vector<int>(4, 1));
}

}  // namespace rlx
