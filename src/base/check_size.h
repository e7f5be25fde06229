// SPDX-License-Identifier: Apache-2.0
// Checks of sizes that a user gives, and their messages.
#pragma once

#include <span>
#include <string_view>

#include "base/dim.h"

namespace rlx {

// RLX_E_RANGE, with the range, if a size is outside the range of its symbol.
Status check_size(std::string_view symbol, int64_t size, const Interval& range);
// The same for the largest size that is planned. Without a declared maximum it has a limit.
Status check_upper_size(std::string_view symbol, int64_t size, const Interval& range);
// RLX_E_RANGE for a number that no size can be.
Status check_literal(const Dim& dim);
// RLX_E_OPTION for the option "dims.n" (key "dims.", name "n") of a graph that has only the known sizes.
Status no_size(std::string_view key, std::string_view name, std::span<const std::string_view> known);

}  // namespace rlx
