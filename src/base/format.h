// SPDX-License-Identifier: Apache-2.0
// format("axis {} is outside rank {}", axis, rank): the texts of messages. Arguments are strings, numbers, and whatever
// has a text or a name of its own: dims, types, dtypes. The pattern is checked when the call is compiled.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace rlx {

// An argument for as long as the call lasts: a string is not copied.
class FormatArg {
 public:
  enum Kind : uint8_t { kText, kSigned, kUnsigned, kFloat, kDouble, kAddress };

  FormatArg(std::string_view text) : kind_(kText), text_(text) {}
  FormatArg(const char* text) : kind_(kText), text_(text) {}
  FormatArg(const std::string& text) : kind_(kText), text_(text) {}
  FormatArg(char) = delete;  // a letter or a number?
  FormatArg(bool value) : kind_(kText), text_(value ? "true" : "false") {}
  FormatArg(std::signed_integral auto value) : kind_(kSigned), signed_(value) {}
  FormatArg(std::unsigned_integral auto value) : kind_(kUnsigned), unsigned_(value) {}
  FormatArg(float value) : kind_(kFloat), float_(value) {}
  FormatArg(double value) : kind_(kDouble), double_(value) {}
  FormatArg(const void* address) : kind_(kAddress), address_(address) {}

  // `digits`: significant digits of a float. `width`: an integer gets leading zeros up to it. 0: the shortest form.
  void append_to(std::string& out, int digits, int width) const;

 private:
  Kind kind_;
  union {
    std::string_view text_;
    int64_t signed_;
    uint64_t unsigned_;
    float float_;
    double double_;
    const void* address_;
  };
};

namespace detail {

// A placeholder of a pattern: "{}", "{:.9}" (digits of a float) or "{:02}" (width of an integer).
struct Placeholder {
  size_t length = 0;  // of its text; 0: no placeholder begins here
  int digits = 0, width = 0;
};

constexpr Placeholder placeholder_at(std::string_view text) {
  if (text.starts_with("{}")) return {2};
  bool digits = text.starts_with("{:."), width = text.starts_with("{:0");
  if (!digits && !width) return {};
  int number = 0;
  size_t at = 3;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 10; at++)
    number = number * 10 + (text[at] - '0');
  if (number == 0 || at == text.size() || text[at] != '}') return {};
  return {at + 1, digits ? number : 0, width ? number : 0};
}

void the_pattern_is_wrong();  // not constexpr: a call of it in a constant expression is a compile error

template <class T>
concept HasTextOf = requires(const T& value) {
  std::string(text_of(value));
};
template <class T>
concept HasText = requires(const T& value) {
  std::string(value.text());
};
template <class T>
concept HasName = requires(const T& value) {
  std::string_view(name(value));
};

template <class T>
decltype(auto) plain(const T& value) {
  if constexpr (HasTextOf<T>)
    return text_of(value);
  else if constexpr (HasText<T>)
    return value.text();
  else if constexpr (HasName<T>)
    return name(value);
  else
    return (value);
}

std::string format_all(std::string_view pattern, std::initializer_list<FormatArg> args);

}  // namespace detail

// A literal with as many placeholders as there are arguments, each of its kind.
template <class... Args>
class FormatPattern {
 public:
  template <size_t n>
  consteval FormatPattern(const char (&text)[n]) : text_(text, n - 1) {  // NOLINT: conversion is the point
    constexpr bool floats[] = {std::is_floating_point_v<std::remove_cvref_t<Args>>..., false};
    constexpr bool integers[] = {std::is_integral_v<std::remove_cvref_t<Args>>..., false};
    size_t found = 0;
    for (size_t i = 0; i < text_.size();) {
      detail::Placeholder here = detail::placeholder_at(text_.substr(i));
      if (here.length == 0 && (text_[i] == '{' || text_[i] == '}')) detail::the_pattern_is_wrong();
      if (here.length != 0) {
        if (found == sizeof...(Args)) detail::the_pattern_is_wrong();
        if ((here.digits && !floats[found]) || (here.width && !integers[found])) detail::the_pattern_is_wrong();
        found++;
      }
      i += here.length ? here.length : 1;
    }
    if (found != sizeof...(Args)) detail::the_pattern_is_wrong();
  }
  std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// An object and no function: a call of a function would find std::format as well, by an argument of namespace std.
struct Formatter {
  template <class... Args>
  std::string operator()(FormatPattern<std::type_identity_t<Args>...> pattern, const Args&... args) const {
    return detail::format_all(pattern.text(), {FormatArg(detail::plain(args))...});
  }
};
inline constexpr Formatter format;

// "1 input", "2 inputs": what the counting messages say.
std::string plural(size_t count, std::string_view noun);

}  // namespace rlx
