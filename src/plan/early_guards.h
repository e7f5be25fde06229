// SPDX-License-Identifier: Apache-2.0
// What steps rely on before the guards that prove it can be checked.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rlx {

// A graph keeps no guard that follows from others: with k = n and k = m it keeps no n = m. If the run finds k, both are
// checked only then. A step that relies on n = m may come before, and read beyond the end of m elements.
//
// So each node is inferred again, with only those guards that can be checked before its step. What these do not prove
// is returned. It follows from the guards of the graph, so it fails no run that would have passed.
// `visits`, for tests: how many guards and nodes were looked at, each time counted.
std::vector<Guard> early_guards(const Plan& plan, uint64_t* visits = nullptr);

}  // namespace rlx
