// SPDX-License-Identifier: Apache-2.0
// Ops on halves that are computed in f32.
#pragma once

#include "base/function_ref.h"
#include "ir/facts.h"

namespace rlx {

// Whether a device could compute a node on halves by a kernel for f32. `is_native` says whether it has a kernel for a
// node.
bool has_kernel_in_f32(const Facts& facts, uint32_t node, FunctionRef<bool(const Facts&, Value)> is_native);

}  // namespace rlx
