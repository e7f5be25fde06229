// SPDX-License-Identifier: Apache-2.0
// Reads protobuf messages (protobuf.dev/programming-guides/encoding) from untrusted bytes: strings and blobs stay views
// of them. Nothing is read out of bounds, nesting is limited, and allocated memory is proportional to the input.
// A message type is a plain struct and a table of its fields; unknown fields are skipped.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace rlx::protobuf {

using Bytes = std::span<const std::byte>;

enum class Wire : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint32_t number;
  Wire wire;
  uint64_t value;  // of a varint or a fixed number
  Bytes bytes;     // of a string, blob, message or packed list
  size_t offset;   // of the value in the file
};

// RLX_E_DATA. Enclosing messages put their names before it: "graph.node[3] at byte 17: ...".
Status damaged(size_t offset, const std::string& what);

class Reader {
 public:
  Reader(Bytes bytes, size_t offset) : bytes_(bytes), offset_(offset) {}  // `offset`: of the first byte in the file
  bool done() const { return at_ == bytes_.size(); }
  size_t offset() const { return offset_ + at_; }
  Result<Field> next();
  Result<uint64_t> number(Wire wire);  // a varint or fixed number, as packed lists hold them

 private:
  Bytes bytes_;
  size_t offset_, at_ = 0;
};

// One field of message type M: `read` stores it. `depth`: how many messages enclose M.
template <class M>
struct Row {
  uint32_t number;
  std::string_view name;
  Status (*read)(M& message, const Field& field, std::string_view name, int depth);
};

inline constexpr int kMaxDepth = 100;

// Fills `message` by the table `rows_of(message)`, found by argument-dependent lookup.
template <class M>
Status parse(M& message, Bytes bytes, size_t offset, int depth = 0) {
  if (depth > kMaxDepth) return damaged(offset, "messages nest more than " + std::to_string(kMaxDepth) + " deep");
  Reader reader(bytes, offset);
  while (!reader.done()) {
    Field field = RLX_TRY(reader.next());
    for (const Row<M>& row : rows_of(message))
      if (row.number == field.number) RLX_TRY(row.read(message, field, row.name, depth));
  }
  return {};
}

Status wrong_wire(const Field& field, std::string_view name, std::string_view expected);
Result<std::string_view> text_of(const Field& field, std::string_view name);  // UTF-8 without NUL

// ---- what `read` can be; the template argument is the member that receives the value ----

template <auto kMember, class M>
Status number(M& message, const Field& field, std::string_view name, int) {
  if (field.wire == Wire::kBytes) return wrong_wire(field, name, "a number");
  auto& to = message.*kMember;
  using T = std::remove_reference_t<decltype(to)>;
  if constexpr (std::is_same_v<T, float>)
    to = std::bit_cast<float>(static_cast<uint32_t>(field.value));
  else
    to = static_cast<T>(field.value);
  return {};
}

template <auto kMember, class M>
Status text(M& message, const Field& field, std::string_view name, int) {
  message.*kMember = RLX_TRY(text_of(field, name));
  return {};
}

template <auto kMember, class M>
Status texts(M& message, const Field& field, std::string_view name, int) {
  (message.*kMember).push_back(RLX_TRY(text_of(field, name)));
  return {};
}

template <auto kMember, class M>
Status blob(M& message, const Field& field, std::string_view name, int) {
  if (field.wire != Wire::kBytes) return wrong_wire(field, name, "bytes");
  message.*kMember = field.bytes;
  return {};
}

// A repeated number, packed or one by one. The wire type of floats is fixed32, of integers varint.
template <auto kMember, class M>
Status numbers(M& message, const Field& field, std::string_view name, int) {
  auto& to = message.*kMember;
  using T = typename std::remove_reference_t<decltype(to)>::value_type;
  constexpr Wire kElement = std::is_same_v<T, float> ? Wire::kFixed32 : Wire::kVarint;
  auto append = [&to](uint64_t value) {
    if constexpr (std::is_same_v<T, float>)
      to.push_back(std::bit_cast<float>(static_cast<uint32_t>(value)));
    else
      to.push_back(static_cast<T>(value));
  };
  if (field.wire == kElement) {
    append(field.value);
    return {};
  }
  if (field.wire != Wire::kBytes) return wrong_wire(field, name, "a list of numbers");
  Reader packed(field.bytes, field.offset);
  while (!packed.done()) append(RLX_TRY(packed.number(kElement)));
  return {};
}

// A repeated number that is decoded later, on demand: stores the fields.
template <auto kMember, class M>
Status later(M& message, const Field& field, std::string_view, int) {
  (message.*kMember).push_back(field);
  return {};
}

template <auto kMember, class M>
Status message(M& message, const Field& field, std::string_view name, int depth) {
  if (field.wire != Wire::kBytes) return wrong_wire(field, name, "a message");
  Status status = parse(message.*kMember, field.bytes, field.offset, depth + 1);
  return status.ok() ? Status() : std::move(status).prefixed("." + std::string(name));
}

template <auto kMember, class M>
Status messages(M& message, const Field& field, std::string_view name, int depth) {
  if (field.wire != Wire::kBytes) return wrong_wire(field, name, "a message");
  auto& list = message.*kMember;
  Status status = parse(list.emplace_back(), field.bytes, field.offset, depth + 1);
  if (status.ok()) return {};
  return std::move(status).prefixed("." + std::string(name) + "[" + std::to_string(list.size() - 1) + "]");
}

}  // namespace rlx::protobuf
