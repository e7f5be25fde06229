// SPDX-License-Identifier: Apache-2.0
// The texts of messages: what `format` makes of each kind of argument.
#include "base/format.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/dim.h"
#include "base/dtype.h"

namespace elsewhere {

struct Thing {};
std::string_view name(const Thing&) {
  return "a thing";
}
std::string format(const char*, const Thing&) {
  return "of elsewhere";
}

}  // namespace elsewhere

namespace rlx {

TEST(format, takes_strings_as_they_come) {
  std::string text = "a";
  std::string_view part = "b";
  const char* old = "c";
  EXPECT_EQ(format("{}{}{} {}", text, part, old, "d"), "abc d");
  EXPECT_EQ(format("%s and nothing"), "%s and nothing");
  EXPECT_EQ(format("{}", std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

TEST(format, takes_every_integer) {
  EXPECT_EQ(format("{} {}", INT64_MIN, UINT64_MAX), "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(format("{} {} {}", int8_t{-1}, uint8_t{200}, true), "-1 200 true");
  EXPECT_EQ(format("{:02} {:02} {:03}", 7, 123, size_t{0}), "07 123 000");
}

TEST(format, writes_numbers_as_short_as_they_read_back) {
  EXPECT_EQ(format("{} {} {}", 0.1, 0.1f, 100000.0), "0.1 0.1 100000");
  EXPECT_EQ(format("{} {} {}", 1e-5, 1e300, -0.0), "1e-05 1e+300 -0");
  EXPECT_EQ(format("{:.3} {:.17}", 2.0 / 3, 0.1), "0.667 0.10000000000000001");
  constexpr double kInf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(format("{} {}", kInf, -kInf), "inf -inf");
}

TEST(format, takes_what_has_a_text_or_a_name) {
  Dim n = Dim::symbol("n");
  EXPECT_EQ(format("{} {} {}", n + 1, std::vector<Dim>{n, 2}, DType::kF16), "n + 1 [n,2] f16");
}

// As std::format is, for a string, since GCC 13.
TEST(format, is_not_that_of_the_namespace_of_an_argument) {
  EXPECT_EQ(format("{}", elsewhere::Thing()), "a thing");
}

TEST(format, a_count_has_the_plural_of_its_noun) {
  EXPECT_EQ(plural(0, "input"), "0 inputs");
  EXPECT_EQ(plural(1, "input"), "1 input");
  EXPECT_EQ(plural(2, "input"), "2 inputs");
  EXPECT_EQ(plural(1, "axis"), "1 axis");
  EXPECT_EQ(plural(2, "axis"), "2 axes");
}

}  // namespace rlx
