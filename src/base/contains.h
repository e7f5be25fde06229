// SPDX-License-Identifier: Apache-2.0
// std::ranges::contains, which C++20 does not have.
#pragma once

#include <algorithm>
#include <iterator>

namespace rlx {

template <class List, class Item>
constexpr bool contains(const List& list, const Item& item) {
  return std::find(std::begin(list), std::end(list), item) != std::end(list);
}

}  // namespace rlx
