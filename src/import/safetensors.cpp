// SPDX-License-Identifier: Apache-2.0
#include "import/safetensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace rlx {

using Json = nlohmann::ordered_json;

static constexpr size_t kLengthBytes = 8;          // the length of the header, little-endian, precedes it
static constexpr size_t kMaxHeader = 100'000'000;  // as in the reference reader
static constexpr int kMaxDepth = 3;                // {tensor: {key: [numbers]}}

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

// The header as JSON; refuses deeper nesting than a header has, and repeated names.
static Result<Json> parse_header(std::string_view text) {
  size_t names = 0;
  bool too_deep = false;
  auto watch = [&](int depth, Json::parse_event_t event, Json&) {
    names += depth == 1 && event == Json::parse_event_t::key;
    too_deep |=
        depth >= kMaxDepth && (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start);
    return !too_deep;
  };
  Json header = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (too_deep) return damaged("the header nests deeper than {tensor: {key: [numbers]}}");
  if (!header.is_object()) return damaged("the header is not a JSON object");
  if (header.size() != names) return damaged("the header has a name twice");
  return header;
}

// Values of a list of sizes; RLX_E_DATA where `json` is anything else.
static Result<std::vector<int64_t>> sizes_of(const Json& tensor, const char* key, const std::string& name) {
  auto list = tensor.find(key);
  bool valid = list != tensor.end() && list->is_array();
  std::vector<int64_t> sizes;
  for (size_t i = 0; valid && i < list->size(); i++) {
    const auto* size = (*list)[i].get_ptr<const Json::number_unsigned_t*>();
    valid = size && *size <= INT64_MAX;
    if (valid) sizes.push_back(static_cast<int64_t>(*size));
  }
  if (!valid) return damaged("tensor '" + name + "': '" + key + "' is not a list of sizes").with("value", name);
  return sizes;
}

static Result<DType> dtype_of(const Json& tensor, const std::string& name) {
  auto found = tensor.find("dtype");
  if (found == tensor.end() || !found->is_string())
    return damaged("tensor '" + name + "': no dtype").with("value", name);
  const auto& text = found->get_ref<const std::string&>();
  for (const auto& row : kDtypes)
    if (row.name == text) return row.dtype;
  return Status(Code::kUnsupported, "safetensors: tensor '" + name + "': elements of the type '" + text + "'")
      .with("value", name);
}

// The metadata is a map of strings to strings.
static Status read_metadata(const Json& map, SafeTensors& out) {
  if (!map.is_object()) return damaged("__metadata__ is not a map of strings");
  for (const auto& [key, value] : map.items()) {
    if (!value.is_string()) return damaged("__metadata__ is not a map of strings");
    out.metadata.emplace_back(key, value.get_ref<const std::string&>());
  }
  return {};
}

Result<SafeTensors> read_safetensors(const Source& source) {
  std::string_view text = RLX_TRY(header_of(source.bytes));
  Json header = RLX_TRY(parse_header(text));
  auto data = source.bytes.subspan(kLengthBytes + text.size());
  SafeTensors out;
  std::vector<std::pair<int64_t, int64_t>> pieces;
  for (const auto& [name, tensor] : header.items()) {
    if (name.find('\0') != name.npos) return damaged("a name with a NUL in it");
    if (name == "__metadata__") {
      RLX_TRY(read_metadata(tensor, out));
      continue;
    }
    if (!tensor.is_object()) return damaged("tensor '" + name + "': no description").with("value", name);
    DType dtype = RLX_TRY(dtype_of(tensor, name));
    auto shape = RLX_TRY(sizes_of(tensor, "shape", name)), range = RLX_TRY(sizes_of(tensor, "data_offsets", name));
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
