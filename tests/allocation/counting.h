// SPDX-License-Identifier: Apache-2.0
// This program counts every operator new, and lets one fail where a test wants it to.
#pragma once

#include <cstdint>

namespace rlx::test {

// So far, by any thread.
int64_t allocations();
int64_t allocated_bytes();

// As long as it lives, an allocation of this thread fails: the nth from now on, from 0.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t nth);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  bool was_met() const;  // false: there were too few
};

}  // namespace rlx::test
