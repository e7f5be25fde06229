// SPDX-License-Identifier: Apache-2.0
#include "import/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rlx {

using Json = nlohmann::ordered_json;

static constexpr size_t kLengthBytes = 8;          // the length of the header, little-endian, precedes it
static constexpr size_t kMaxHeader = 100'000'000;  // as in the reference reader
static constexpr size_t kMaxDepth = 3;             // {tensor: {key: [numbers]}}

static constexpr struct {
  std::string_view name;
  DType dtype;
} kDtypes[] = {{"F64", DType::kF64},   {"F32", DType::kF32},        {"F16", DType::kF16},        {"BF16", DType::kBF16},
               {"I64", DType::kI64},   {"I32", DType::kI32},        {"I16", DType::kI16},        {"I8", DType::kI8},
               {"U64", DType::kU64},   {"U32", DType::kU32},        {"U16", DType::kU16},        {"U8", DType::kU8},
               {"BOOL", DType::kBool}, {"F8_E4M3", DType::kF8E4M3}, {"F8_E5M2", DType::kF8E5M2}, {"C64", DType::kC64}};

static Status damaged(const std::string& what) {
  return Status(Code::kData, "safetensors: " + what);
}

static Result<std::string_view> header_of(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes)
    return damaged(format("a file of {}: the header's length is missing", plural(bytes.size(), "byte")));
  std::memcpy(&length, bytes.data(), kLengthBytes);
  if (length > kMaxHeader || length > bytes.size() - kLengthBytes)
    return damaged(
        format("byte 0: a header of {}, but {} are left", plural(length, "byte"), bytes.size() - kLengthBytes));
  return std::string_view(reinterpret_cast<const char*>(bytes.data()) + kLengthBytes, static_cast<size_t>(length));
}

// The first byte of a header decides, so that a file which ends too early is known as one.
bool is_safetensors(std::span<const std::byte> bytes) {
  uint64_t length = 0;
  if (bytes.size() <= kLengthBytes || bytes[kLengthBytes] != std::byte{'{'}) return false;
  std::memcpy(&length, bytes.data(), kLengthBytes);
  return length > 0 && length <= kMaxHeader;
}

// What the header says of a name.
struct Field {
  enum class Kind { kText, kSizes, kOther };
  std::string key;
  Kind kind = Kind::kOther;
  std::string text = {};
  std::vector<int64_t> sizes = {};
};
struct Described {
  std::string name;
  bool is_map = false;
  std::vector<Field> fields = {};  // of a map

  const Field* find(std::string_view key, Field::Kind kind) const {  // of equal keys the last counts
    auto last = std::find_if(fields.rbegin(), fields.rend(), [&](const Field& it) { return it.key == key; });
    return last != fields.rend() && last->kind == kind ? &*last : nullptr;
  }
};

// Takes the events of the parser. A tree of Json is not made: its destructor allocates, so one that is released where
// memory has ended would end the process.
class HeaderReader {
 public:
  std::vector<Described> header;
  bool is_too_deep = false;

  bool null() { return other(); }
  bool boolean(bool) { return other(); }
  bool number_integer(int64_t) { return other(); }
  bool number_float(double, const std::string&) { return other(); }
  bool binary(Json::binary_t&) { return other(); }
  bool number_unsigned(uint64_t number) {
    if (!is_in_list() || number > INT64_MAX) return other();
    field().sizes.push_back(static_cast<int64_t>(number));
    return true;
  }
  bool string(std::string& text) {
    if (!is_in_map()) return other();
    field().kind = Field::Kind::kText;
    field().text = std::move(text);
    return true;
  }
  bool key(std::string& name) {
    if (open_.size() == 1)
      header.push_back({std::move(name)});
    else if (is_in_map())
      header.back().fields.push_back({std::move(name)});
    return true;
  }
  bool start_object(size_t) {
    if (open_.size() == 1) header.back().is_map = true;
    return open('{');
  }
  bool start_array(size_t) {
    if (is_in_map()) field().kind = Field::Kind::kSizes;
    return !open_.empty() && open('[');
  }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) { return false; }

 private:
  bool is_in_map() const { return open_ == "{{"; }    // of a name
  bool is_in_list() const { return open_ == "{{["; }  // of a field
  Field& field() { return header.back().fields.back(); }
  // A value of another kind. The header itself is an object.
  bool other() {
    if (is_in_list()) field().kind = Field::Kind::kOther;
    return !open_.empty();
  }
  bool open(char what) {
    is_too_deep = open_.size() >= kMaxDepth;
    if (!is_too_deep) open_ += what;
    return !is_too_deep;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string open_;  // the brackets around what comes next
};

static bool has_a_name_twice(std::span<const Described> header) {
  std::vector<std::string_view> names;
  for (const Described& it : header) names.push_back(it.name);
  std::ranges::sort(names);
  return std::ranges::adjacent_find(names) != names.end();
}

// Refuses deeper nesting than a header has, and repeated names.
static Result<std::vector<Described>> parse_header(std::string_view text) {
  HeaderReader reader;
  bool is_json = Json::sax_parse(text.begin(), text.end(), &reader);
  if (reader.is_too_deep) return damaged("the header nests deeper than {tensor: {key: [numbers]}}");
  if (!is_json) return damaged("the header is not a JSON object");
  if (has_a_name_twice(reader.header)) return damaged("the header has a name twice");
  return std::move(reader.header);
}

static Result<std::vector<int64_t>> sizes_of(const Described& tensor, const char* key) {
  if (const Field* list = tensor.find(key, Field::Kind::kSizes)) return list->sizes;
  return damaged("tensor '" + tensor.name + "': '" + key + "' is not a list of sizes").with("value", tensor.name);
}

static Result<DType> dtype_of(const Described& tensor) {
  const std::string& name = tensor.name;
  const Field* dtype = tensor.find("dtype", Field::Kind::kText);
  if (!dtype) return damaged("tensor '" + name + "': no dtype").with("value", name);
  for (const auto& row : kDtypes)
    if (row.name == dtype->text) return row.dtype;
  return Status(Code::kUnsupported, "safetensors: tensor '" + name + "': elements of the type '" + dtype->text + "'")
      .with("value", name);
}

// The metadata is a map of strings to strings.
static Status read_metadata(const Described& map, SafeTensors& out) {
  auto is_text = [](const Field& it) { return it.kind == Field::Kind::kText; };
  if (!map.is_map || !std::ranges::all_of(map.fields, is_text)) return damaged("__metadata__ is not a map of strings");
  for (const Field& it : map.fields) out.metadata.emplace_back(it.key, it.text);
  return {};
}

Result<SafeTensors> read_safetensors(const Source& source) {
  std::string_view text = RLX_TRY(header_of(source.bytes));
  std::vector<Described> header = RLX_TRY(parse_header(text));
  auto data = source.bytes.subspan(kLengthBytes + text.size());
  SafeTensors out;
  std::vector<std::pair<int64_t, int64_t>> pieces;
  for (const Described& tensor : header) {
    const std::string& name = tensor.name;
    if (name.find('\0') != name.npos) return damaged("a name with a NUL in it");
    if (name == "__metadata__") {
      RLX_TRY(read_metadata(tensor, out));
      continue;
    }
    if (!tensor.is_map) return damaged("tensor '" + name + "': no description").with("value", name);
    DType dtype = RLX_TRY(dtype_of(tensor));
    auto shape = RLX_TRY(sizes_of(tensor, "shape")), range = RLX_TRY(sizes_of(tensor, "data_offsets"));
    if (range.size() != 2 || range[0] > range[1] || static_cast<uint64_t>(range[1]) > data.size())
      return damaged(format("tensor '{}': its data_offsets are not within the {} bytes of data", name, data.size()))
          .with("value", name);
    auto bytes = data.subspan(static_cast<size_t>(range[0]), static_cast<size_t>(range[1] - range[0]));
    auto view = tensor_over(source, bytes, dtype, shape);
    if (!view.ok())
      return std::move(view).status().prefixed("safetensors: tensor '" + name + "': ").with("value", name);
    out.tensors.emplace_back(name, std::move(view).value());
    pieces.emplace_back(range[0], range[1]);
  }
  std::sort(pieces.begin(), pieces.end());
  int64_t end = 0;
  for (auto [begin, next] : pieces) {
    if (begin != end) return damaged(format("the tensors overlap or leave a gap at byte {} of the data", end));
    end = next;
  }
  if (static_cast<uint64_t>(end) != data.size())
    return damaged(format("{} bytes of data, of which the tensors take {}", data.size(), end));
  return out;
}

}  // namespace rlx
