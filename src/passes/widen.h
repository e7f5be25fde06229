// SPDX-License-Identifier: Apache-2.0
// Halves that are computed in f32.
#pragma once

#include "base/function_ref.h"
#include "ir/facts.h"

namespace rlx {

// Whether a node on halves could be computed in f32 by a kernel that a device has, `is_native` says of which nodes.
bool can_be_widened(const Facts& facts, uint32_t node, FunctionRef<bool(const Facts&, Value)> is_native);

}  // namespace rlx
