// SPDX-License-Identifier: Apache-2.0
// Writes JSON (RFC 8259) for reports and schemas. Members stay in the order written, one element per line, so that a
// report can be read and compared as text. The writer places the commas; the caller must end whatever it begins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);  // the next value belongs to it

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool truth);
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint64_t number);
  JsonWriter& value(int number) { return value(static_cast<int64_t>(number)); }
  JsonWriter& value(double number);  // shortest digits that read back equal; JSON has no NaN or inf: null
  JsonWriter& value(std::span<const int64_t> numbers);  // on one line
  JsonWriter& null();

  template <class T>
  JsonWriter& member(std::string_view name, const T& v) {
    return key(name).value(v);
  }

  // The document; every begin must have met its end.
  std::string take() &&;

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();  // comma, line break and indent before the next key or element
  void quote(std::string_view text);

  std::string text_;
  int depth_ = 0;
  bool first_ = true;       // the innermost bracket is still empty
  bool after_key_ = false;  // the next value continues a line
};

}  // namespace rlx
