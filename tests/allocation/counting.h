// SPDX-License-Identifier: Apache-2.0
// This program counts every operator new.
#pragma once

#include <cstdint>

namespace rlx::test {

int64_t allocations();  // so far, by any thread

}  // namespace rlx::test
