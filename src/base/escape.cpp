// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <charconv>

namespace rlx {

std::string quoted(std::string_view text, char mark) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string result(1, mark);
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n')
      result += "\\n";
    else if (c == '\\' || (c == mark && mark == '"'))
      result += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f || c == mark)
      result += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    else
      result += c;
  }
  return result + mark;
}

std::optional<char> read_escaped(std::string_view text, size_t& at) {
  char c = text[at++];
  if (c != '\\') return c;
  if (at == text.size()) return std::nullopt;
  c = text[at++];
  if (c == 'n') return '\n';
  if (c == '"' || c == '\\') return c;
  std::string_view digits = text.substr(at, 2);
  unsigned byte = 0;
  const char* end = digits.data() + digits.size();
  bool is_byte = c == 'x' && digits.size() == 2 && std::from_chars(digits.data(), end, byte, 16).ptr == end;
  if (!is_byte || byte > 0x7f) return std::nullopt;
  at += 2;
  return static_cast<char>(byte);
}

}  // namespace rlx
