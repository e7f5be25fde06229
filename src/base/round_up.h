// SPDX-License-Identifier: Apache-2.0
// Sizes rounded up to a unit.
#pragma once

#include <concepts>

namespace rlx {

// The least multiple of `unit` that is not below `size`.
template <std::integral T>
constexpr T round_up(T size, T unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace rlx
