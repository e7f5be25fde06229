// SPDX-License-Identifier: Apache-2.0
// Lists of words that users write, "error|clamp|drop", and enums whose values have such names. Each such enum has one
// list, beside its definition, in the order of the values, which count up from 0.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

namespace rlx {

// The position of a word in a list; nullopt: it is not there.
constexpr std::optional<int> find_word(std::string_view list, std::string_view word) {
  for (int position = 0; !list.empty(); position++) {
    std::string_view first = list.substr(0, list.find('|'));
    if (first == word) return position;
    list.remove_prefix(std::min(first.size() + 1, list.size()));
  }
  return std::nullopt;
}

template <class Enum>
inline constexpr std::string_view kChoices = {};

// The value of that name; nullopt: there is none.
template <class Enum>
constexpr std::optional<Enum> find_choice(std::string_view name) {
  static_assert(!kChoices<Enum>.empty());
  std::optional<int> value = find_word(kChoices<Enum>, name);
  return value ? std::optional(static_cast<Enum>(*value)) : std::nullopt;
}

}  // namespace rlx
