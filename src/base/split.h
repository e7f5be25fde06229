// SPDX-License-Identifier: Apache-2.0
// Text in parts.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace rlx {

// The parts between separators. One that ends the text has no part after it; an empty text has none at all.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace rlx
