// SPDX-License-Identifier: Apache-2.0
// The `act` attribute of fused ops: a name from attr_defs::kActivations as the op that it stands for.
#pragma once

#include <string_view>

#include "ops/expr.h"

namespace rlx {

Expr apply_act(Expr x, std::string_view act);  // a name that is none of them is our bug: attributes were checked

}  // namespace rlx
