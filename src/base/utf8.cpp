// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <cstdint>

namespace rlx {

size_t utf8_length(std::string_view text) {
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};  // smaller ones have a shorter encoding
  auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return 1;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  uint32_t point = first & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return 0;
    point = point << 6 | (byte & 0x3f);
  }
  bool is_surrogate = point >= 0xd800 && point < 0xe000;
  return point < kLeast[length] || point > 0x10ffff || is_surrogate ? 0 : length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace rlx
