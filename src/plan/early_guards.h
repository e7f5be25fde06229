// SPDX-License-Identifier: Apache-2.0
// What a run can check before its first step, though guards say it by way of sizes that the run finds.
#pragma once

#include <vector>

#include "plan/plan.h"

namespace rlx {

// From k = n and k = m follows n = m. Proofs rely on it wherever k is found, so a step before that would read beyond
// the end of m elements. These guards name only sizes that are known before the run.
std::vector<Guard> early_guards(const Plan& plan);

}  // namespace rlx
