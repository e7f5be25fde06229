// SPDX-License-Identifier: Apache-2.0
// Floating-point numbers as fractions: the simple one that a number was rounded from, if there is one, 7/10 for 0.7f;
// and the one that it is, 11744051/16777216.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>

namespace rlx {

struct Fraction {
  int64_t numerator = 0, denominator = 1;

  double value() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
};

// The fraction with the smallest denominator, at most 4096, that rounds to x.
template <class Float>
std::optional<Fraction> simple_fraction_of(Float x) {
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

// The fraction that x > 0 is exactly, if both parts are at most 2^32, so that its product with a size does not
// overflow.
inline std::optional<Fraction> exact_fraction_of(double x) {
  static constexpr double kLargest = 0x1p32;
  Fraction fraction;
  for (; x != std::floor(x); x *= 2)  // exact
    if ((fraction.denominator *= 2) > static_cast<int64_t>(kLargest)) return std::nullopt;
  if (!(x <= kLargest)) return std::nullopt;
  fraction.numerator = static_cast<int64_t>(x);
  return fraction;
}

}  // namespace rlx
