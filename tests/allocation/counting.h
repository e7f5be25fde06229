// SPDX-License-Identifier: Apache-2.0
// This program counts every operator new.
#pragma once

#include <cstdint>

namespace rlx::test {

// So far, by any thread.
int64_t allocations();
int64_t allocated_bytes();

}  // namespace rlx::test
