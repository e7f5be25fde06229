// SPDX-License-Identifier: Apache-2.0
// The transformations that golden files name in their header: `; pass: decompose`.
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace rlx {

Result<Graph> run_transform(std::string_view name, const Graph& graph);  // RLX_E_NOT_FOUND for a name that is none

}  // namespace rlx
