// SPDX-License-Identifier: Apache-2.0
// The JSON that reports and schemas are written in.
#include "base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace rlx {
namespace {

template <class T>
std::string text_of(const T& value) {
  JsonWriter json;
  json.value(value);
  return std::move(json).take();
}

TEST(json, keeps_the_order_and_indents) {
  JsonWriter json;
  json.begin_object().member("z", 1).member("a", "x");
  json.key("list").begin_array().value(true).null().begin_object().end_object().end_array();
  json.key("dims").value(std::vector<int64_t>{2, -3});
  json.end_object();
  EXPECT_EQ(std::move(json).take(), R"({
 "z": 1,
 "a": "x",
 "list": [
  true,
  null,
  {}
 ],
 "dims": [2, -3]
}
)");
}

TEST(json, numbers_lose_nothing) {
  EXPECT_EQ(text_of(std::numeric_limits<int64_t>::min()), "-9223372036854775808\n");
  EXPECT_EQ(text_of(std::numeric_limits<uint64_t>::max()), "18446744073709551615\n");
  for (double x : {0.1, -0.0, 1e-5, 1.7976931348623157e308, 5e-324, 1.0 / 3}) {
    EXPECT_EQ(std::strtod(text_of(x).c_str(), nullptr), x);
  }
  EXPECT_EQ(text_of(0.1), "0.1\n");
  EXPECT_EQ(text_of(std::nan("")), "null\n");
}

TEST(json, strings_are_escaped_and_always_utf8) {
  EXPECT_EQ(text_of("a\"b\\c\n\t\x01"), "\"a\\\"b\\\\c\\n\\t\\u0001\"\n");
  EXPECT_EQ(text_of("caf\xC3\xA9 \xF0\x9F\x99\x82"), "\"caf\xC3\xA9 \xF0\x9F\x99\x82\"\n");
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  for (const char* bad : {"\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xFF"}) {
    std::string expected = "\"";
    for (size_t i = 0; i < strlen(bad); i++) expected += kReplacement;
    EXPECT_EQ(text_of(bad), expected + "\"\n");
  }
}

}  // namespace
}  // namespace rlx
