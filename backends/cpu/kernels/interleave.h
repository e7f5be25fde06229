// SPDX-License-Identifier: Apache-2.0
// Vectors of 16 bytes, which every processor has, interleaved element by element.
#pragma once

#include <utility>

namespace rlx::cpu {

// low, high = a0 b0 a1 b1 ...
template <class T, int... I>
[[gnu::always_inline]] inline void interleave(const T& a, const T& b, T& low, T& high,
                                              std::integer_sequence<int, I...>) {
  constexpr int kWidth = sizeof...(I);
  low = __builtin_shufflevector(a, b, (I / 2 + I % 2 * kWidth)...);
  high = __builtin_shufflevector(a, b, (kWidth / 2 + I / 2 + I % 2 * kWidth)...);
}

}  // namespace rlx::cpu
