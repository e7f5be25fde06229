// SPDX-License-Identifier: Apache-2.0
#include "base/format.h"

#include <charconv>
#include <cmath>

namespace rlx {

// A whole number is written without a point or exponent, any other with the fewest digits that read back equal.
template <class T>
static std::to_chars_result write(char* begin, char* end, T value, int digits) {
  if (digits) return std::to_chars(begin, end, value, std::chars_format::general, digits);
  bool is_minus_zero = value == 0 && std::signbit(value);
  if (std::fabs(value) < T(1e15) && value == std::trunc(value) && !is_minus_zero)
    return std::to_chars(begin, end, static_cast<int64_t>(value));
  return std::to_chars(begin, end, value);
}

void FormatArg::append_to(std::string& out, int digits, int width) const {
  char buffer[128];  // holds a number of 99 digits, the most that a placeholder can ask for
  char* end = buffer + sizeof buffer;
  std::to_chars_result written{buffer, {}};
  switch (kind_) {
    case kText: out += text_; return;
    case kSigned: written = std::to_chars(buffer, end, signed_); break;
    case kUnsigned: written = std::to_chars(buffer, end, unsigned_); break;
    case kFloat: written = write(buffer, end, float_, digits); break;
    case kDouble: written = write(buffer, end, double_, digits); break;
    case kAddress: written = std::to_chars(buffer, end, reinterpret_cast<uintptr_t>(address_), 16); break;
  }
  if (kind_ == kAddress) out += "0x";
  auto length = static_cast<size_t>(written.ptr - buffer);
  if (length < static_cast<size_t>(width)) out.append(static_cast<size_t>(width) - length, '0');
  out.append(buffer, length);
}

std::string detail::format_all(std::string_view pattern, std::initializer_list<FormatArg> args) {
  std::string out;
  const FormatArg* next = args.begin();
  for (size_t i = 0; i < pattern.size();) {
    Placeholder here = placeholder_at(pattern.substr(i));
    if (here.length == 0) {
      out += pattern[i++];
      continue;
    }
    (next++)->append_to(out, here.digits, here.width);
    i += here.length;
  }
  return out;
}

std::string plural(size_t count, std::string_view noun) {
  if (count == 1) return format("1 {}", noun);
  bool is_axis = noun.ends_with("is");
  return format("{} {}{}", count, noun.substr(0, noun.size() - (is_axis ? 2 : 0)), is_axis ? "es" : "s");
}

}  // namespace rlx
