// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/dim.h"

namespace rlx {

// RLX_E_RANGE, with the range, if a size is outside the range of its symbol.
Status check_size(std::string_view symbol, int64_t size, const Interval& range);

}  // namespace rlx
