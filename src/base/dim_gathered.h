// SPDX-License-Identifier: Apache-2.0
// A sum with max or min among its terms, written with fewer parts.
#pragma once

#include "base/dim.h"

namespace rlx {

// n - max(0,n - 16) is min(16,n), and n + max(0,8 - n) is max(8,n): equal at all sizes. Without this, a slice of a
// slice would hold its size twice, and a chain of them would double it at each step.
Dim gathered(const Dim& sum);

// The same for the operands of quotients, max and min as well.
Dim gathered_throughout(const Dim& dim);

}  // namespace rlx
