// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <charconv>

namespace rlx {

static void append_hex(std::string& text, char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  auto byte = static_cast<unsigned char>(c);
  text += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
}

// Every character, but what would end a line or not be seen is escaped.
static void append_visible(std::string& text, char c) {
  if (c == '\n')
    text += "\\n";
  else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
    append_hex(text, c);
  else
    text += c;
}

std::string quoted(std::string_view text, char mark) {
  std::string result(1, mark);
  for (char c : text) {
    if (c == '\\' || (c == mark && mark == '"'))
      result += {'\\', c};
    else if (c == mark)
      append_hex(result, c);
    else
      append_visible(result, c);
  }
  return result + mark;
}

std::string on_one_line(std::string_view text) {
  std::string result;
  for (char c : text) append_visible(result, c);
  return result;
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
