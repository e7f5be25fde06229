// SPDX-License-Identifier: Apache-2.0
// Storage types narrower than f32: each converts to float exactly, and from any number by one rounding to nearest even.
// Arithmetic happens in float (semantics.md N6), so these have no operators.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

namespace rlx {

// Rounds a number to float on its way to a narrower type. A number that float cannot hold becomes the neighbour whose
// last bit is set. That one never lies halfway between two narrower numbers, so the second rounding is right.
constexpr float round_to_odd(float value) {
  return value;
}
inline float round_to_odd(double value) {
  auto nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  uint32_t bits = std::bit_cast<uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) bits--;  // back to the value toward zero
  return std::bit_cast<float>(bits | 1);
}
template <std::integral T>
constexpr float round_to_odd(T value) {
  bool negative = std::is_signed_v<T> && value < T{};
  uint64_t size = negative ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  int dropped = std::bit_width(size) > 24 ? static_cast<int>(std::bit_width(size)) - 24 : 0;
  uint64_t kept = size >> dropped;
  if (kept << dropped != size) kept |= 1;
  float rounded = static_cast<float>(kept) * static_cast<float>(uint64_t{1} << dropped);
  return negative ? -rounded : rounded;
}

template <class T>
concept NotFloat = std::same_as<T, double> || std::integral<T>;

// Rounds a float to a format of `kExponent` exponent and `kMantissa` mantissa bits, denormals included. A value that
// rounds past the largest finite one becomes `kOverflow`, a bit pattern without sign.
template <int kExponent, int kMantissa, uint32_t kMax, uint32_t kOverflow, uint32_t kNan>
constexpr uint32_t round_to_small_float(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = (bits >> 31) << (kExponent + kMantissa);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | kNan;
  constexpr int kBias = (1 << (kExponent - 1)) - 1;
  int exponent = static_cast<int>(magnitude >> 23) - 127;
  uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
  int shift = 23 - kMantissa;
  if (exponent < 1 - kBias) shift += 1 - kBias - exponent;  // a denormal keeps fewer bits
  if (shift > 25) return sign;
  uint32_t kept = mantissa >> shift;
  uint32_t rest = mantissa & ((1u << shift) - 1), half = 1u << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  // `kept` includes the hidden bit, which adds 1 to the exponent field; so we add the exponent minus 1.
  uint32_t result = exponent < 1 - kBias ? kept : kept + (static_cast<uint32_t>(exponent + kBias - 1) << kMantissa);
  return sign | (magnitude == 0x7f800000u || result > kMax ? kOverflow : result);
}

// A stored bool: any non-zero byte is true (semantics.md T6), which reading a C++ bool would not allow.
struct bool8 {
  uint8_t byte = 0;
  constexpr bool8() = default;
  constexpr bool8(bool value) : byte(value) {}
  constexpr operator bool() const { return byte != 0; }
};

struct f16 {
  uint16_t bits = 0;
  constexpr f16() = default;
  constexpr f16(float value) : bits(round_to_small_float<5, 10, 0x7bff, 0x7c00, 0x7e00>(value)) {}
  template <NotFloat T>
  constexpr f16(T value) : f16(round_to_odd(value)) {}
  constexpr operator float() const {
    uint32_t sign = uint32_t{bits} << 16 & 0x80000000u, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
    if (exponent) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
    float denormal = static_cast<float>(mantissa) * 0x1p-24f;
    return std::bit_cast<float>(std::bit_cast<uint32_t>(denormal) | sign);
  }
};

struct bf16 {
  uint16_t bits = 0;
  constexpr bf16() = default;
  constexpr bf16(float value) {
    uint32_t wide = std::bit_cast<uint32_t>(value);
    if ((wide & 0x7fffffffu) > 0x7f800000u)
      bits = static_cast<uint16_t>(wide >> 16 | 0x40);
    else
      bits = static_cast<uint16_t>((wide + 0x7fff + (wide >> 16 & 1)) >> 16);
  }
  template <NotFloat T>
  constexpr bf16(T value) : bf16(round_to_odd(value)) {}
  constexpr operator float() const { return std::bit_cast<float>(uint32_t{bits} << 16); }
};

// OCP E4M3FN: no infinity. `saturating` is that of `cast` (semantics.md T8); the plain conversion gives NaN past the
// end.
struct f8e4m3 {
  uint8_t bits = 0;
  constexpr f8e4m3() = default;
  constexpr f8e4m3(float value) : bits(round_to_small_float<4, 3, 0x7e, 0x7f, 0x7f>(value)) {}
  template <NotFloat T>
  constexpr f8e4m3(T value) : f8e4m3(round_to_odd(value)) {}
  static constexpr f8e4m3 saturating(float value) {
    f8e4m3 result;
    result.bits = round_to_small_float<4, 3, 0x7e, 0x7e, 0x7f>(value);
    return result;
  }
  constexpr operator float() const {
    int exponent = bits >> 3 & 15, mantissa = bits & 7;
    float magnitude = exponent ? std::bit_cast<float>(uint32_t(exponent + 120) << 23 | uint32_t(mantissa) << 20)
                               : static_cast<float>(mantissa) * 0x1p-9f;
    if ((bits & 0x7f) == 0x7f) magnitude = std::bit_cast<float>(0x7fc00000u);
    return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | (bits & 0x80u) << 24);
  }
};

struct f8e5m2 {
  uint8_t bits = 0;
  constexpr f8e5m2() = default;
  constexpr f8e5m2(float value) : bits(round_to_small_float<5, 2, 0x7b, 0x7c, 0x7e>(value)) {}
  template <NotFloat T>
  constexpr f8e5m2(T value) : f8e5m2(round_to_odd(value)) {}
  static constexpr f8e5m2 saturating(float value) {
    f8e5m2 result;
    result.bits = round_to_small_float<5, 2, 0x7b, 0x7b, 0x7e>(value);
    return result;
  }
  constexpr operator float() const {
    f16 wide;
    wide.bits = static_cast<uint16_t>(bits << 8);
    return wide;
  }
};

}  // namespace rlx
