// SPDX-License-Identifier: Apache-2.0
// What steps rely on before the guards that prove it can be checked.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rlx {

// From k = n and k = m follows n = m, so no guard of n = m is kept. But where the run finds k, those are checked late:
// a step before that would read beyond the end of m elements. This infers each node again with only those guards whose
// sizes are known as soon as its own are, and returns what they do not prove. All of it follows from the guards of the
// graph, so no run fails that they let pass.
// `visits`, for tests: how many guards and nodes were looked at, each time counted.
std::vector<Guard> early_guards(const Plan& plan, uint64_t* visits = nullptr);

}  // namespace rlx
