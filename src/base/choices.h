// SPDX-License-Identifier: Apache-2.0
// Enums whose values have names that users write. Each such enum has one list, beside its definition:
// "error|clamp|drop", in the order of the values, which count up from 0.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

namespace rlx {

template <class Enum>
inline constexpr std::string_view kChoices = {};

// The value of that name; nullopt: there is none.
template <class Enum>
constexpr std::optional<Enum> find_choice(std::string_view name) {
  static_assert(!kChoices<Enum>.empty());
  std::string_view rest = kChoices<Enum>;
  for (int value = 0; !rest.empty(); value++) {
    std::string_view choice = rest.substr(0, rest.find('|'));
    if (choice == name) return static_cast<Enum>(value);
    rest.remove_prefix(std::min(choice.size() + 1, rest.size()));
  }
  return std::nullopt;
}

}  // namespace rlx
