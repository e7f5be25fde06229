// SPDX-License-Identifier: Apache-2.0
#include "ir/text/scan.h"

#include <algorithm>

#include "base/escape.h"

namespace rlx::text {

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
static bool is_word_part(char c) {
  return is_letter(c) || is_digit(c) || c == '.';
}
static bool is_label_part(char c) {
  return is_word_part(c) || c == '/' || c == ':';
}
static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// ---- moving ----

void Scanner::skip_blanks() {
  while (is_blank(peek()) && !at_end()) at_++;
  if (begins_comment()) at_ = std::min(text_.find('\n', at_), text_.size());
}

void Scanner::skip_lines() {
  for (skip_blanks(); peek() == '\n'; skip_blanks()) at_++;
}

bool Scanner::take(char c) {
  skip_blanks();
  if (at_end() || peek() != c) return false;
  at_++;
  return true;
}

bool Scanner::take(std::string_view word) {
  skip_blanks();
  if (!text_.substr(at_).starts_with(word)) return false;
  at_ += word.size();
  return true;
}

bool Scanner::at_line_end() {
  skip_blanks();
  return at_end() || peek() == '\n' || peek() == '}';
}

std::string_view Scanner::word() {
  skip_blanks();
  size_t start = at_;
  if (is_letter(peek()))
    while (is_word_part(peek())) at_++;
  return text_.substr(start, at_ - start);
}

std::string_view Scanner::label() {
  skip_blanks();
  size_t start = at_;
  bool numbered = peek() == '%';
  if (numbered) at_++;
  if (numbered || is_letter(peek()) || peek() == '/')
    while (is_label_part(peek())) at_++;
  return text_.substr(start, at_ - start);
}

std::string_view Scanner::expression(std::string_view stops) {
  skip_blanks();
  size_t start = at_, depth = 0;
  for (bool in_quotes = false; !at_end(); at_++) {
    char c = peek();
    if (c == '\n') break;
    if (c == '\'') in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (depth == 0 && (begins_comment() || stops.find(c) != stops.npos)) break;
    if (c == '(') depth++;
    if (c == ')' && depth) depth--;
  }
  std::string_view found = text_.substr(start, at_ - start);
  while (!found.empty() && is_blank(found.back())) found.remove_suffix(1);
  return found;
}

// ---- strings ----

Result<std::string> Scanner::quoted() {
  size_t start = at_++;
  std::string result;
  while (!at_end() && peek() != '"' && peek() != '\n') {
    size_t at = at_;
    auto c = read_escaped(text_, at_);
    if (!c && at + 1 == text_.size()) break;
    if (!c) return error_at(at, "expected \\\", \\\\, \\n or \\x and 00 to 7f");
    result += *c;
  }
  if (peek() != '"') return error_at(start, "this string has no end on its line");
  at_++;
  return result;
}

bool is_word(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_word_part);
}

bool is_label(std::string_view text) {
  if (text == "_" || text == "output" || text == "guard") return false;
  return !text.empty() && (is_letter(text[0]) || text[0] == '/') &&
         std::all_of(text.begin(), text.end(), is_label_part);
}

// ---- errors ----

Scanner::Position Scanner::position(size_t at) const {
  std::string_view before = text_.substr(0, at);
  size_t line_start = before.rfind('\n') + 1;                                                 // npos + 1 is 0
  auto is_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; };  // not inside of UTF-8
  auto columns = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(), is_character);
  return {static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1, static_cast<size_t>(columns) + 1};
}

std::string Scanner::prefix(Position position) const {
  return form_ == kFile ? format("{}:{}: ", position.line, position.column) : format("column {}: ", position.column);
}

Status Scanner::error_at(size_t at, std::string message) const {
  return located(at, Status(form_ == kFile ? Code::kData : Code::kOption, std::move(message)));
}

Status Scanner::located(size_t at, Status status) const {
  Position where = position(at);
  status = std::move(status).prefixed(prefix(where)).with("column", std::to_string(where.column));
  return form_ == kFile ? std::move(status).with("line", std::to_string(where.line)) : status;
}

}  // namespace rlx::text
