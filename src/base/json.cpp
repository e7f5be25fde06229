// SPDX-License-Identifier: Apache-2.0
// The JSON writer. Its output is valid UTF-8 whatever bytes it is given: RFC 8259 8.1 demands it of a document.
#include "base/json.h"

#include <cassert>
#include <charconv>
#include <cmath>

#include "base/utf8.h"

namespace rlx {
namespace {

template <class T>
void append_number(std::string& text, T number) {
  char digits[40];
  auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  text.append(digits, end);
}

}  // namespace

void JsonWriter::separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (depth_ == 0) return;
  if (!first_) text_ += ',';
  text_ += '\n';
  text_.append(static_cast<size_t>(depth_), ' ');
  first_ = false;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  depth_++;
  first_ = true;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  assert(depth_ > 0 && !after_key_);
  depth_--;
  if (!first_) {
    text_ += '\n';
    text_.append(static_cast<size_t>(depth_), ' ');
  }
  text_ += bracket;
  first_ = false;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  assert(depth_ > 0 && !after_key_);
  separate();
  quote(name);
  text_ += ": ";
  after_key_ = true;
  return *this;
}

void JsonWriter::quote(std::string_view text) {
  text_ += '"';
  while (!text.empty()) {
    size_t length = utf8_length(text);
    unsigned char c = static_cast<unsigned char>(text[0]);
    if (length == 0) {
      text_ += "\xEF\xBF\xBD";  // U+FFFD for a byte that is not UTF-8
      length = 1;
    } else if (c == '"' || c == '\\') {
      text_ += '\\';
      text_ += text[0];
    } else if (c < 0x20) {
      constexpr char kHex[] = "0123456789abcdef";
      text_ += c == '\n' ? "\\n" : c == '\t' ? "\\t" : std::string{'\\', 'u', '0', '0', kHex[c >> 4], kHex[c & 15]};
    } else {
      text_.append(text.substr(0, length));
    }
    text.remove_prefix(length);
  }
  text_ += '"';
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  quote(text);
  return *this;
}

JsonWriter& JsonWriter::value(bool truth) {
  separate();
  text_ += truth ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::value(int64_t number) {
  separate();
  append_number(text_, number);
  return *this;
}

JsonWriter& JsonWriter::value(uint64_t number) {
  separate();
  append_number(text_, number);
  return *this;
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return null();
  separate();
  append_number(text_, number);
  return *this;
}

JsonWriter& JsonWriter::value(std::span<const int64_t> numbers) {
  separate();
  text_ += '[';
  for (size_t i = 0; i < numbers.size(); i++) {
    if (i > 0) text_ += ", ";
    append_number(text_, numbers[i]);
  }
  text_ += ']';
  return *this;
}

JsonWriter& JsonWriter::null() {
  separate();
  text_ += "null";
  return *this;
}

std::string JsonWriter::take() && {
  assert(depth_ == 0);
  text_ += '\n';
  return std::move(text_);
}

}  // namespace rlx
