// SPDX-License-Identifier: Apache-2.0
// Writes protobuf messages, so that tests can state a file field by field.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace rlx {

class Message {
 public:
  Message& number(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Message& f32(uint32_t field, float value) {
    varint(field << 3 | 5);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& sub(uint32_t field, const Message& message) { return text(field, message.bytes_); }
  template <class T>
  Message& raw(uint32_t field, std::initializer_list<T> values) {
    return text(field, {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)});
  }
  Message& packed(uint32_t field, std::initializer_list<int64_t> values) {
    Message list;
    for (int64_t value : values) list.varint(static_cast<uint64_t>(value));
    return sub(field, list);
  }

  const std::string& bytes() const { return bytes_; }
  std::span<const std::byte> span() const { return std::as_bytes(std::span(bytes_)); }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

}  // namespace rlx
