// SPDX-License-Identifier: Apache-2.0
// A position in a text, and the words that can be read from there. It is never past the end, and every error gives it.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace rlx::text {

class Scanner {
 public:
  enum Form : uint8_t { kLine, kFile };  // errors say "column 5: " or "3:5: "
  Scanner(std::string_view text, Form form) : text_(text), form_(form) {}

  size_t at() const { return at_; }
  bool at_end() const { return at_ == text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  void advance(size_t count) { at_ += count; }
  void rewind(size_t at) { at_ = at; }  // to an earlier position

  void skip_blanks();  // spaces and a comment, up to the line break
  void skip_lines();   // line breaks too
  // These skip blanks first.
  bool take(char c);
  bool take(std::string_view word);  // punctuation of several characters
  bool at_line_end();                // or at a '}', or at the end
  std::string_view word();           // letters, digits, "_" and "."; empty where none begins
  std::string_view label();          // a value's name: as a word, with "/" and ":", maybe after a "%"
  Result<std::string> quoted();      // the position must be at '"'

  // Text up to one of `stops` outside of parentheses and quotes, without blanks around it; a size, a number, a word.
  std::string_view expression(std::string_view stops);

  Status error(std::string message) const { return error_at(at_, std::move(message)); }
  Status error_at(size_t at, std::string message) const;
  // A failure from elsewhere, with this place before its message.
  Status located(size_t at, Status status) const;

 private:
  struct Position {
    size_t line, column;
  };
  bool begins_comment() const { return form_ == kFile && peek() == ';'; }  // a line is an argument: it has none
  Position position(size_t at) const;
  std::string prefix(Position position) const;

  std::string_view text_;
  Form form_;
  size_t at_ = 0;
};

bool is_word(std::string_view text);   // whether word() reads all of it
bool is_label(std::string_view text);  // whether label() reads all of it, and it is not a keyword

}  // namespace rlx::text
