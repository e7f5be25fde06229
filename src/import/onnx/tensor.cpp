// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/tensor.h"

#include <charconv>
#include <cstring>

#include "import/onnx/e2m1.h"

namespace rlx::onnx {

namespace {

// TensorProto.DataType, and the field that holds elements of the type when raw_data does not.
struct ElementType {
  std::string_view name;
  DType dtype = DType::kNone;  // none: refused
  uint32_t field = 0;
  int bits = 0;  // 2 or 4: several in a byte, low bits first
};
constexpr uint32_t kFloatData = 4, kInt32Data = 5, kInt64Data = 7, kDoubleData = 10, kUint64Data = 11;
constexpr ElementType kElementTypes[] = {{"undefined"},
                                         {"float", DType::kF32, kFloatData},
                                         {"uint8", DType::kU8, kInt32Data},
                                         {"int8", DType::kI8, kInt32Data},
                                         {"uint16", DType::kU16, kInt32Data},
                                         {"int16", DType::kI16, kInt32Data},
                                         {"int32", DType::kI32, kInt32Data},
                                         {"int64", DType::kI64, kInt64Data},
                                         {"string"},
                                         {"bool", DType::kBool, kInt32Data},
                                         {"float16", DType::kF16, kInt32Data},
                                         {"double", DType::kF64, kDoubleData},
                                         {"uint32", DType::kU32, kUint64Data},
                                         {"uint64", DType::kU64, kUint64Data},
                                         {"complex64", DType::kC64, kFloatData},
                                         {"complex128", DType::kC128, kDoubleData},
                                         {"bfloat16", DType::kBF16, kInt32Data},
                                         {"float8e4m3fn", DType::kF8E4M3, kInt32Data},
                                         {"float8e4m3fnuz"},
                                         {"float8e5m2", DType::kF8E5M2, kInt32Data},
                                         {"float8e5m2fnuz"},
                                         {"uint4", DType::kU8, kInt32Data, 4},
                                         {"int4", DType::kI8, kInt32Data, 4},
                                         {"float4e2m1", DType::kF8E4M3, kInt32Data, 4},
                                         {"float8e8m0"},
                                         {"uint2", DType::kU8, kInt32Data, 2},
                                         {"int2", DType::kI8, kInt32Data, 2}};

// Elements from a typed field, in file order, as `size` low bytes each: packed or one by one, fixed or varint.
Result<std::vector<std::byte>> typed_bytes(const TensorProto& proto, uint32_t number, size_t size) {
  using protobuf::Wire;
  Wire wire = number == kFloatData ? Wire::kFixed32 : number == kDoubleData ? Wire::kFixed64 : Wire::kVarint;
  size_t stored = number == kFloatData ? 4 : number == kDoubleData ? 8 : size;  // a complex number is two elements
  std::vector<std::byte> bytes;
  auto append = [&](uint64_t value) {
    const auto* first = reinterpret_cast<const std::byte*>(&value);
    bytes.insert(bytes.end(), first, first + stored);
  };
  for (const protobuf::Field& field : proto.typed_data) {
    if (field.number != number) return protobuf::damaged(field.offset, "these elements are not of the tensor's type");
    if (field.wire == wire) {
      append(field.value);
    } else if (field.wire == Wire::kBytes) {
      protobuf::Reader packed(field.bytes, field.offset);
      while (!packed.done()) append(RLX_TRY(packed.number(wire)));
    } else {
      return protobuf::wrong_wire(field, "elements", "a list of numbers");
    }
  }
  return bytes;
}

Result<uint64_t> parse_number(std::string_view key, std::string_view text) {
  uint64_t value = 0;
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size())
    return Status(Code::kData,
                  "the " + std::string(key) + " '" + std::string(text) + "' of its external data is not a number");
  return value;
}

}  // namespace

Result<DType> dtype_of(int32_t element_type) {
  if (element_type < 0 || static_cast<size_t>(element_type) >= std::size(kElementTypes))
    return Status(Code::kData, format("there is no ONNX element type {}", element_type));
  const ElementType& type = kElementTypes[element_type];
  if (type.dtype != DType::kNone) return type.dtype;
  return Status(Code::kUnsupported, "elements of the ONNX type " + std::string(type.name)).with("got", type.name);
}

int bits_of(int32_t element_type) {
  bool is_known = element_type >= 0 && static_cast<size_t>(element_type) < std::size(kElementTypes);
  return is_known ? kElementTypes[element_type].bits : 0;
}

// Unpacks several numbers per byte to one byte each.
static Result<Tensor> unpacked(std::span<const std::byte> packed, const TensorProto& proto, DType dtype, int bits) {
  auto count = element_count(std::span<const int64_t>(proto.dims));
  auto per_byte = int64_t{8 / bits};
  if (!count || *count < 0 || (*count + per_byte - 1) / per_byte != static_cast<int64_t>(packed.size()))
    return Status(Code::kData, format("{} bytes do not hold numbers of {} bits of its dims", packed.size(), bits));
  std::vector<std::byte> bytes(static_cast<size_t>(*count));
  for (size_t i = 0; i < bytes.size(); i++) {
    size_t shift = i % static_cast<size_t>(per_byte) * static_cast<size_t>(bits);
    int value = (std::to_integer<int>(packed[i / static_cast<size_t>(per_byte)]) >> shift) & ((1 << bits) - 1);
    bool is_negative = dtype == DType::kI8 && (value >> (bits - 1)) != 0;
    bytes[i] =
        is_e2m1(dtype, bits) ? e2m1_as_f8(value) : static_cast<std::byte>(is_negative ? value - (1 << bits) : value);
  }
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return tensor_over({*owner, owner, {}}, *owner, dtype, proto.dims);
}

static Result<Tensor> read_here(const TensorProto& proto, const Source& source, DType dtype) {
  if (int bits = bits_of(proto.data_type)) {
    if (proto.typed_data.empty()) return unpacked(proto.raw_data, proto, dtype, bits);
    return unpacked(RLX_TRY(typed_bytes(proto, kInt32Data, 1)), proto, dtype, bits);
  }
  if (!proto.raw_data.empty() || proto.typed_data.empty())
    return tensor_over(source, proto.raw_data, dtype, proto.dims);
  auto size = static_cast<size_t>(element_bytes(dtype));
  auto bytes = RLX_TRY(typed_bytes(proto, kElementTypes[proto.data_type].field, size));
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  return tensor_over({*owner, owner, {}}, *owner, dtype, proto.dims);
}

Result<Tensor> TensorReader::read(const TensorProto& proto) {
  auto attempt = [&]() -> Result<Tensor> {
    DType dtype = RLX_TRY(dtype_of(proto.data_type));
    if (proto.data_location == 1) return read_external(proto, dtype);
    return read_here(proto, source_, dtype);
  };
  Result<Tensor> tensor = attempt();
  if (tensor.ok()) return tensor;
  const char* joint = tensor.status().message().starts_with(" at byte") ? "" : ": ";
  return std::move(tensor)
      .status()
      .prefixed("tensor '" + std::string(proto.name) + "'" + joint)
      .with("value", proto.name);
}

// Where each value stands in the dense tensor.
static Result<std::vector<int64_t>> places_of(const Tensor& indices, std::span<const int64_t> dims, int64_t count,
                                              int64_t values) {
  bool is_linear = indices.rank() == 1;
  auto rank = static_cast<int64_t>(dims.size()), width = is_linear ? int64_t{1} : rank;
  if (indices.dtype() != DType::kI64 || indices.rank() < 1 || indices.rank() > 2 || indices.dims()[0] != values ||
      indices.count() != values * width)
    return Status(Code::kData, format("its indices are {}, for {} values of rank {}",
                                      type_text(indices.dtype(), indices.dims()), values, rank));
  std::vector<int64_t> places;
  const auto* index = indices.as<int64_t>();
  for (int64_t i = 0; i < values; i++) {
    int64_t place = 0;
    for (int64_t k = 0; k < width; k++) {
      int64_t at = *index++, size = is_linear ? count : dims[static_cast<size_t>(k)];
      if (at < 0 || at >= size) return Status(Code::kData, format("its index {} is not below {}", at, size));
      place = place * size + at;
    }
    places.push_back(place);
  }
  return places;
}

Result<Tensor> TensorReader::read(const SparseTensorProto& proto) {
  constexpr int64_t kMaxElements = int64_t{1} << 24,
                    kMaxPerValue = 1 << 10;  // a small file must not ask for much memory
  auto failed = [&](Status status) {
    return std::move(status)
        .prefixed("sparse tensor '" + std::string(proto.values.name) + "': ")
        .with("value", proto.values.name);
  };
  Tensor given = RLX_TRY(read(proto.values)), places = RLX_TRY(read(proto.indices));
  Tensor values = RLX_TRY(given.aligned()), indices = RLX_TRY(places.aligned());
  auto count = element_count(std::span<const int64_t>(proto.dims));
  if (values.rank() != 1 || is_block(values.dtype()) || !count || *count < 0 || proto.dims.size() > kMaxRank)
    return failed(Status(Code::kData, "its values are no list, or its dims no shape"));
  if (*count > std::max(kMaxElements, values.count() * kMaxPerValue))
    return failed(Status(Code::kUnsupported, format("{} elements, of which {} are given", *count, values.count())));
  auto at = places_of(indices, proto.dims, *count, values.count());
  if (!at.ok()) return failed(std::move(at).status());
  auto size = static_cast<size_t>(element_bytes(values.dtype()));
  auto dense = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(*count) * size);
  for (size_t i = 0; i < at->size(); i++)
    std::memcpy(dense->data() + static_cast<size_t>((*at)[i]) * size, values.data() + i * size, size);
  return tensor_over({*dense, dense, {}}, *dense, values.dtype(), proto.dims);
}

std::string_view external_location(const TensorProto& proto) {
  std::string_view location;
  for (const StringEntry& entry : proto.external_data)
    if (entry.key == "location") location = entry.value;
  return location;
}

Result<Tensor> TensorReader::read_external(const TensorProto& proto, DType dtype) {
  std::string_view location = external_location(proto);
  uint64_t offset = 0, length = 0;
  bool has_length = false;
  for (const StringEntry& entry : proto.external_data) {
    if (entry.key == "offset") offset = RLX_TRY(parse_number(entry.key, entry.value));
    if (entry.key == "length") length = RLX_TRY(parse_number(entry.key, entry.value)), has_length = true;
  }
  if (!source_.external)
    return Status(Code::kDenied,
                  format("its external data '{}' needs a model that is a file, not bytes in memory", location))
        .with("got", location);
  const Source file = RLX_TRY(source_.external->open(location));
  auto count = element_count(proto.dims);
  auto size = count ? byte_size(dtype, *count) : std::nullopt;
  if (int bits = bits_of(proto.data_type)) {
    if (!has_length) return Status(Code::kData, "the length of its external data is not said");
    if (offset > file.bytes.size() || length > file.bytes.size() - offset)
      return Status(Code::kData, "its external file ends before it does");
    return unpacked(file.bytes.subspan(offset, length), proto, dtype, bits);
  }
  if (!has_length && size) length = static_cast<uint64_t>(*size);
  if (offset > file.bytes.size() || length > file.bytes.size() - offset)
    return Status(Code::kData, format("bytes {} to {} of its external file '{}', which has {}", offset, offset + length,
                                      file.path, file.bytes.size()));
  return tensor_over(file, file.bytes.subspan(offset, length), dtype, proto.dims);
}

}  // namespace rlx::onnx
