// SPDX-License-Identifier: Apache-2.0
// Narrow floats round once, whatever number they are made of: beside the middle of two neighbours to the nearer one, at
// the middle to the even one.
#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace rlx {

template <class T>
static T of_bits(unsigned bits) {
  T value;
  value.bits = static_cast<decltype(value.bits)>(bits);
  return value;
}

template <class T>
static void expect_one_rounding(unsigned largest) {
  for (unsigned bits = 0; bits < largest; bits++) {
    T low = of_bits<T>(bits), high = of_bits<T>(bits + 1), even = bits % 2 ? high : low;
    double middle = (static_cast<double>(static_cast<float>(low)) + static_cast<double>(static_cast<float>(high))) / 2;
    ASSERT_EQ(T(middle).bits, even.bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, 1e300)).bits, high.bits) << bits;
    ASSERT_EQ(T(std::nextafter(middle, -1e300)).bits, low.bits) << bits;
    ASSERT_EQ(T(-std::nextafter(middle, 1e300)).bits & 0x7fff & ~(1u << (8 * sizeof(T) - 1)), high.bits) << bits;
    if (middle < 0x1p40 || middle > 0x1p62) continue;
    auto whole = static_cast<int64_t>(middle);
    ASSERT_EQ(T(whole).bits, even.bits) << bits;
    ASSERT_EQ(T(whole + 1).bits, high.bits) << bits;
    ASSERT_EQ(T(whole - 1).bits, low.bits) << bits;
    ASSERT_EQ(T(-whole - 1).bits, T(-static_cast<float>(high)).bits) << bits;
    ASSERT_EQ(T(static_cast<uint64_t>(whole) + 1).bits, high.bits) << bits;
  }
}

TEST(half, a_double_or_an_integer_is_rounded_once) {
  expect_one_rounding<f16>(0x7bff);
  expect_one_rounding<bf16>(0x7f7f);
  expect_one_rounding<f8e4m3>(0x7e);
  expect_one_rounding<f8e5m2>(0x7b);
}

TEST(half, ends_of_the_range) {
  EXPECT_EQ(f16(65519.999).bits, 0x7bff);
  EXPECT_EQ(f16(65520.0).bits, 0x7c00);
  EXPECT_EQ(f16(65519).bits, 0x7bff);
  EXPECT_EQ(f16(65520).bits, 0x7c00);
  EXPECT_EQ(f16(std::numeric_limits<int64_t>::min()).bits, 0xfc00);
  EXPECT_EQ(bf16(std::numeric_limits<int64_t>::min()).bits, 0xdf00);
  EXPECT_EQ(bf16(std::numeric_limits<uint64_t>::max()).bits, 0x5f80);
  EXPECT_EQ(bf16(1e300).bits, 0x7f80);
  EXPECT_EQ(bf16(-1e-300).bits, 0x8000);
  EXPECT_EQ(f16(-0.0).bits, 0x8000);
  EXPECT_EQ(f16(true).bits, 0x3c00);
  EXPECT_TRUE(std::isnan(static_cast<float>(f16(std::nan("")))));
  EXPECT_TRUE(std::isnan(static_cast<float>(bf16(std::nan("")))));
}

}  // namespace rlx
