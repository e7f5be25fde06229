// SPDX-License-Identifier: Apache-2.0
// The option io.alias: outputs that take the memory of inputs.
#pragma once

#include <string>
#include <vector>

#include "plan/plan.h"

namespace rlx {

// The slots that each "output=input" names. Their types are equal, and no slot is named twice.
Result<std::vector<SlotAlias>> find_aliases(const Graph& graph, const std::vector<std::string>& given);

}  // namespace rlx
