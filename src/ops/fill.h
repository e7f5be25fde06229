// SPDX-License-Identifier: Apache-2.0
// What the definitions of ranges and the importer share.
#pragma once

#include "ops/expr.h"

namespace rlx {

// How many numbers start, start + step, ... lie before `limit`: an i64. Integers are counted in i64, where their
// differences do not wrap.
Expr range_count(Expr start, Expr limit, Expr step);

}  // namespace rlx
