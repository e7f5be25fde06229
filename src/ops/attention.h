// SPDX-License-Identifier: Apache-2.0
// What every form of attention makes of its attributes at their ends.
#pragma once

#include <cstdint>

#include "ir/attr.h"

namespace rlx {

// Beyond every position, and far from where sums with positions wrap: a wider window counts as this one.
inline constexpr int64_t kWidestWindow = int64_t{1} << 62;

// The cap in the dtype in which scores are computed; 0: none. For a cap below the normal numbers of the dtype the least
// of them stands: both leave scores that count as 0 (semantics.md N5), but 0 / 0 is NaN. A cap that the dtype does not
// hold is none.
double softcap_of(const Attrs& attrs, DType dtype);

}  // namespace rlx
