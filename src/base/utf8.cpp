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

size_t utf8_prefix(std::string_view text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t length = utf8_length(rest);
    if (length == 0) break;
    rest.remove_prefix(length);
  }
  return text.size() - rest.size();
}

bool is_utf8(std::string_view text) {
  return utf8_prefix(text) == text.size();
}

std::string readable(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  while (true) {
    size_t length = utf8_prefix(text);
    result += text.substr(0, length);
    if (length == text.size()) return result;
    auto byte = static_cast<unsigned char>(text[length]);
    result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    text.remove_prefix(length + 1);
  }
}

}  // namespace rlx
