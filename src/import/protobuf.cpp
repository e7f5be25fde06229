// SPDX-License-Identifier: Apache-2.0
// Fields from bytes: varints, lengths, and the errors that say where a message is damaged.
#include "import/protobuf.h"

#include <cstring>

#include "base/utf8.h"

namespace rlx::protobuf {

Status damaged(size_t offset, const std::string& what) {
  return Status(Code::kData, format(" at byte {}: ", offset) + what).with("offset", std::to_string(offset));
}

Status wrong_wire(const Field& field, std::string_view name, std::string_view expected) {
  return damaged(field.offset, format("the field '{}' is not {}", name, expected)).with("expected", expected);
}

Result<std::string_view> text_of(const Field& field, std::string_view name) {
  if (field.wire != Wire::kBytes) return wrong_wire(field, name, "a string");
  std::string_view text(reinterpret_cast<const char*>(field.bytes.data()), field.bytes.size());
  if (!is_utf8(text) || text.find('\0') != text.npos) return wrong_wire(field, name, "UTF-8 text");
  return text;
}

static Result<uint64_t> varint(Bytes bytes, size_t& at, size_t offset) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at == bytes.size()) return damaged(offset + at, "the data ends inside a number");
    auto byte = static_cast<uint64_t>(bytes[at++]);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  return damaged(offset + at, "a number of more than 64 bits");
}

Result<uint64_t> Reader::number(Wire wire) {
  if (wire == Wire::kVarint) return varint(bytes_, at_, offset_);
  size_t size = wire == Wire::kFixed32 ? 4 : 8;
  if (bytes_.size() - at_ < size) return damaged(offset(), "the data ends inside a number");
  uint64_t value = 0;
  std::memcpy(&value, bytes_.data() + at_, size);
  at_ += size;
  return value;
}

Result<Field> Reader::next() {
  size_t start = offset();
  uint64_t tag = RLX_TRY(number(Wire::kVarint));
  auto wire = static_cast<Wire>(tag & 7);
  if (tag >> 3 == 0 || tag >> 32 != 0) return damaged(start, "no field has this number");
  Field field{static_cast<uint32_t>(tag >> 3), wire, 0, {}, offset()};
  switch (wire) {
    case Wire::kVarint:
    case Wire::kFixed32:
    case Wire::kFixed64: field.value = RLX_TRY(number(wire)); return field;
    case Wire::kBytes: {
      uint64_t size = RLX_TRY(number(Wire::kVarint));
      if (size > bytes_.size() - at_)
        return damaged(start, format("a field of {}, but {} are left", plural(size, "byte"), bytes_.size() - at_));
      field.offset = offset();
      field.bytes = bytes_.subspan(at_, static_cast<size_t>(size));
      at_ += static_cast<size_t>(size);
      return field;
    }
  }
  return damaged(start, format("a field of the unknown wire type {}", static_cast<int>(wire)));
}

}  // namespace rlx::protobuf
