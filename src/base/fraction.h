// SPDX-License-Identifier: Apache-2.0
// The simple fraction that a floating-point number was rounded from, if there is one: 7/10 for 0.7f.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace rlx {

struct Fraction {
  int64_t numerator = 0, denominator = 1;
};

// The fraction with the smallest denominator, at most 4096, that rounds to x.
template <class Float>
std::optional<Fraction> fraction_of(Float x) {
  static constexpr int64_t kLargestDenominator = 4096;
  static constexpr double kLargestNumerator = 0x1p40;
  for (int64_t denominator = 1; denominator <= kLargestDenominator; denominator++) {
    double numerator = std::nearbyint(static_cast<double>(x) * static_cast<double>(denominator));
    if (!(std::abs(numerator) <= kLargestNumerator)) return std::nullopt;
    if (static_cast<Float>(numerator / static_cast<double>(denominator)) == x)
      return Fraction{static_cast<int64_t>(numerator), denominator};
  }
  return std::nullopt;
}

}  // namespace rlx
