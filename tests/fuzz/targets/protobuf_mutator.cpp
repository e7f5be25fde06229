// SPDX-License-Identifier: Apache-2.0
// Mutates messages of protocol buffers field by field. So lengths stay right, and changes reach what the fields mean.
// Mutations of single bytes would mostly damage a length, which ends the import at once.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

enum Wire : uint64_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

struct Field {
  uint64_t tag = 0;           // number and wire type
  uint64_t number = 0;        // of a varint
  std::string bytes;          // else, unless it is a message
  std::vector<Field> fields;  // of a message, which is what reads as one

  Wire wire() const { return static_cast<Wire>(tag & 7); }
};
using Message = std::vector<Field>;

constexpr int kDeepest = 16;

std::optional<uint64_t> take_varint(std::string_view& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64 && !in.empty(); shift += 7) {
    auto byte = static_cast<uint8_t>(in.front());
    in.remove_prefix(1);
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<Message> parse(std::string_view in, int depth) {
  Message message;
  while (!in.empty()) {
    Field& field = message.emplace_back();
    auto tag = take_varint(in);
    if (!tag || *tag < 8) return std::nullopt;
    field.tag = *tag;
    auto length = field.wire() == kFixed64 ? 8 : field.wire() == kFixed32 ? 4 : take_varint(in);
    if (!length) return std::nullopt;
    if (field.wire() == kVarint) {
      field.number = *length;
      continue;
    }
    bool is_known = field.wire() == kBytes || field.wire() == kFixed64 || field.wire() == kFixed32;
    if (!is_known || *length > in.size()) return std::nullopt;
    field.bytes = in.substr(0, *length);
    in.remove_prefix(*length);
    if (field.wire() != kBytes || depth == kDeepest) continue;
    if (auto inner = parse(field.bytes, depth + 1)) field.fields = *std::move(inner);
  }
  return message;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::string serialize(const Message& message) {
  std::string out;
  for (const Field& field : message) {
    put_varint(out, field.tag);
    if (field.wire() == kVarint) {
      put_varint(out, field.number);
      continue;
    }
    std::string bytes = field.fields.empty() ? field.bytes : serialize(field.fields);
    if (field.wire() == kBytes) put_varint(out, bytes.size());
    out += bytes;
  }
  return out;
}

void collect(Message& message, std::vector<Message*>& all) {
  all.push_back(&message);
  for (Field& field : message)
    if (!field.fields.empty()) collect(field.fields, all);
}

void change(Field& field, std::mt19937& random) {
  static constexpr uint64_t kNumbers[] = {0,           1, 2, 3, 7, 8, 16, 127, uint64_t{1} << 31, uint64_t{1} << 62,
                                          ~uint64_t{0}};
  if (field.wire() == kVarint) {
    uint64_t picked = kNumbers[random() % std::size(kNumbers)];
    field.number = random() % 2 ? picked : field.number + random() % 5 - 2;
    return;
  }
  if (!field.fields.empty()) {
    field.bytes = serialize(field.fields);
    field.fields.clear();
  }
  size_t room = field.wire() == kBytes ? field.bytes.size() + 16 : field.bytes.size();
  std::string bytes = field.bytes;
  bytes.resize(room);
  size_t size = LLVMFuzzerMutate(reinterpret_cast<uint8_t*>(bytes.data()), field.bytes.size(), room);
  if (field.wire() == kBytes) bytes.resize(size);
  field.bytes = bytes;
}

// One change of one field: its value, its presence, its place, or a copy of a field of any other message.
void mutate(Message& root, std::mt19937& random) {
  std::vector<Message*> all;
  collect(root, all);
  Message& message = *all[random() % all.size()];
  const Message& other = *all[random() % all.size()];
  if (message.empty() || other.empty()) return;
  size_t at = random() % message.size();
  Field copied = other[random() % other.size()];
  switch (random() % 8) {
    case 0: message.erase(message.begin() + static_cast<ptrdiff_t>(at)); break;
    case 1: message.insert(message.begin() + static_cast<ptrdiff_t>(at), std::move(copied)); break;
    case 2: std::swap(message[at], message[random() % message.size()]); break;
    case 3:
      if (message[at].wire() == kBytes) message[at].fields = std::move(copied.fields);
      break;
    default: change(message[at], random);
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  std::mt19937 random(seed);
  auto message = random() % 8 ? parse({reinterpret_cast<const char*>(data), size}, 0) : std::nullopt;
  if (!message || message->empty()) return LLVMFuzzerMutate(data, size, max_size);
  for (auto changes = random() % 3 + 1; changes > 0; changes--) mutate(*message, random);
  std::string out = serialize(*message);
  if (out.empty() || out.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, out.data(), out.size());
  return out.size();
}
