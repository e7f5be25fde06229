// SPDX-License-Identifier: Apache-2.0
#include "ir/text/value.h"

#include <charconv>
#include <cmath>
#include <unordered_set>

#include "base/escape.h"
#include "base/format.h"
#include "base/nearest.h"
#include "ir/text.h"

namespace rlx::text {

// ---- types ----

// A failure of parse_dim, at the place of its text.
static Result<Dim> located_dim(const Scanner& in, size_t at, std::string_view text) {
  if (text.empty()) return in.error_at(at, "expected a size");
  auto dim = parse_dim(text);
  if (!dim.ok()) return in.error_at(at, std::string(dim.status().message()));
  return dim;
}

Result<ValueType> scan_type(Scanner& in) {
  in.skip_blanks();
  size_t start = in.at();
  std::string_view word = in.word();
  auto dtype = find_dtype(word);
  if (!dtype)
    return in.error_at(
        start, word.empty() ? "expected a dtype" : format("unknown dtype '{}'{}", word, did_you_mean_dtype(word)));
  if (in.peek() != '[') return in.error("expected '[' and the sizes after a dtype");
  in.advance(1);
  ValueType type{*dtype, {}};
  while (!in.take(']')) {
    if (!type.dims.empty() && !in.take(',')) return in.error("expected ',' or ']'");
    in.skip_blanks();
    size_t at = in.at();
    type.dims.push_back(RLX_TRY(located_dim(in, at, in.expression(",]"))));
    if (type.dims.size() > kMaxRank) return in.error_at(at, format("the rank is above the limit of {}", kMaxRank));
  }
  return type;
}

// ---- words and numbers ----

static std::optional<AttrValue> integer_of(std::string_view word) {
  int64_t value = 0;
  auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size() || word == "-0") return std::nullopt;
  return value;
}

// An integer, an f64, or nothing. "inf" and "nan" are words here; a reader that expects a number accepts them.
static std::optional<AttrValue> number_of(std::string_view word) {
  if (auto integer = integer_of(word)) return integer;
  if (word.find_first_of("0123456789") == word.npos || word.find_first_of("nN(") != word.npos) return std::nullopt;
  double value = 0;
  auto [end, failure] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (failure != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::optional<double> special_number(std::string_view word) {
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

struct Item {
  std::string text;
  bool quoted;
};

static std::optional<double> number_of(const Item& item) {
  if (item.quoted) return std::nullopt;
  if (auto special = special_number(item.text)) return special;
  auto number = number_of(item.text);
  if (!number) return std::nullopt;
  auto* integer = std::get_if<int64_t>(&*number);
  return integer ? static_cast<double>(*integer) : std::get<double>(*number);
}

// The narrowest kind that fits all items: integers, numbers, strings.
static AttrValue list_of(const std::vector<Item>& items) {
  std::vector<int64_t> integers;
  std::vector<double> numbers;
  std::vector<std::string> strings;
  for (const Item& item : items) {
    auto integer = item.quoted ? std::nullopt : integer_of(item.text);
    if (integer) integers.push_back(std::get<int64_t>(*integer));
    if (auto number = number_of(item)) numbers.push_back(*number);
    strings.push_back(item.text);
  }
  if (integers.size() == items.size()) return integers;
  if (numbers.size() == items.size()) return numbers;
  return strings;
}

static Result<AttrValue> scan_list(Scanner& in) {
  std::vector<Item> items;
  for (in.skip_lines(); !in.take(']'); in.skip_lines()) {
    if (!items.empty() && !in.take(',')) return in.error("expected ',' or ']'");
    in.skip_lines();
    if (in.peek() == '"') {
      items.push_back({RLX_TRY(in.quoted()), true});
      continue;
    }
    std::string_view text = in.expression(",[]{}\"");
    if (text.empty()) return in.error("expected a number, a word, a string or a size");
    items.push_back({std::string(text), false});
  }
  return list_of(items);
}

Result<AttrValue> scan_value(Scanner& in) {
  if (in.peek() == '"') return AttrValue(RLX_TRY(in.quoted()));
  if (in.take('[')) return scan_list(in);
  size_t start = in.at();
  std::string_view text = in.expression(" \t\r,[]{}\"");
  if (in.peek() == '[' && find_dtype(text)) {
    in.rewind(start);
    return AttrValue(RLX_TRY(scan_tensor(in)));
  }
  if (text.empty()) return in.error("expected a value");
  if (auto number = number_of(text)) return *number;
  return AttrValue(std::string(text));
}

// ---- writing ----

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";  // of either sign
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

// A size as one word: without the spaces around its operators.
static std::string tight(const Dim& dim) {
  std::string text, spaced = dim.text();
  bool in_quotes = false;
  for (char c : spaced) {
    if (c == '\'') in_quotes = !in_quotes;
    if (c != ' ' || in_quotes) text += c;
  }
  return text;
}

template <class T, class Fn>
static std::string joined(const std::vector<T>& items, Fn fn) {
  std::string text = "[";
  for (const T& item : items) text += (text.size() > 1 ? "," : "") + fn(item);
  return text + "]";
}

std::string value_text(AttrKind kind, const AttrValue& value) {
  switch (kind) {
    case AttrKind::kI64: return std::to_string(std::get<int64_t>(value));
    case AttrKind::kBool: return std::get<int64_t>(value) ? "true" : "false";
    case AttrKind::kF64: return number_text(std::get<double>(value));
    case AttrKind::kEnum:
      return is_word(std::get<std::string>(value)) ? std::get<std::string>(value)
                                                   : quoted(std::get<std::string>(value));
    case AttrKind::kStr: return quoted(std::get<std::string>(value));
    case AttrKind::kDtype: return std::string(name(std::get<DType>(value)));
    case AttrKind::kDim: return tight(std::get<Dim>(value));
    case AttrKind::kDims: return text_of(std::get<std::vector<Dim>>(value));
    case AttrKind::kTensor: return tensor_text(*std::get<TensorAttr>(value));
    case AttrKind::kI64s:
      return joined(std::get<std::vector<int64_t>>(value), [](int64_t item) { return std::to_string(item); });
    case AttrKind::kF64s: return joined(std::get<std::vector<double>>(value), number_text);
    case AttrKind::kStrs:
      return joined(std::get<std::vector<std::string>>(value), [](const std::string& item) { return quoted(item); });
    case AttrKind::kGraph:
    case AttrKind::kFree: break;  // the printer writes these itself
  }
  return {};
}

// An f64 that no reader takes for an integer.
static std::string point_text(double number) {
  std::string text = number_text(number);
  return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
}

std::string free_text(const AttrValue& value) {
  if (auto* number = std::get_if<int64_t>(&value)) return std::to_string(*number);
  if (auto* number = std::get_if<double>(&value)) return point_text(*number);
  if (auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  if (auto* list = std::get_if<std::vector<double>>(&value)) return joined(*list, point_text);
  bool is_strings = std::holds_alternative<std::vector<std::string>>(value);
  return value_text(is_strings ? AttrKind::kStrs : AttrKind::kI64s, value);
}

}  // namespace rlx::text

namespace rlx {

// `key=value` up to the end; a key may stand once.
static Result<NamedAttrs> scan_attrs(text::Scanner& in) {
  NamedAttrs attrs;
  std::unordered_set<std::string> known;  // thousands of sizes may be options
  for (in.skip_lines(); !in.at_end(); in.skip_lines()) {
    size_t at = in.at();
    std::string key(in.word());
    if (key.empty()) return in.error("expected the name of an attribute");
    if (in.peek() != '=') return in.error("expected '=' after '" + key + "'");
    in.advance(1);
    if (!known.insert(key).second)
      return in.located(at, Status(Code::kOption, "'" + key + "' is given twice").with("value", key));
    attrs.emplace_back(std::move(key), RLX_TRY(text::scan_value(in)));
  }
  return attrs;
}

Result<NamedAttrs> parse_attrs(std::string_view text) {
  text::Scanner in(text, text::Scanner::kLine);
  return scan_attrs(in);
}

}  // namespace rlx
