// SPDX-License-Identifier: Apache-2.0
// GGUF: the types of tensors, a reader of bytes in order, then the parts of a file as they follow one another.
#include "import/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_set>

#include "base/half.h"
#include "base/json.h"
#include "base/utf8.h"

namespace rlx {

static Status damaged(const std::string& what) {
  return Status(Code::kData, "gguf: " + what);
}

// ---- types of tensors ----

// A byte holds five digits of base 3 as a fraction of 256: multiplied by 3^n modulo 256, it carries digit n at the next
// multiplication by 3.
static float ternary(std::byte digits, int n) {
  static constexpr unsigned kPowers[] = {1, 3, 9, 27, 81};
  unsigned rest = std::to_integer<unsigned>(digits) * kPowers[n] & 0xff;
  return static_cast<float>(static_cast<int>(rest * 3 >> 8) - 1);
}

static void decode_tq1_0(const std::byte* block, float* out) {  // qs[48]@0, qh[4]@48, d f16@52
  f16 d;
  std::memcpy(&d, block + 52, sizeof d);
  // Bytes [first, first + width) hold `digits` digits each. The elements are the first digits of all bytes, then the
  // second digits, and so on.
  static constexpr struct { int first, width, digits; } kRuns[] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
  for (auto [first, width, digits] : kRuns)
    for (int n = 0; n < digits; n++)
      for (int i = 0; i < width; i++) *out++ = ternary(block[first + i], n) * static_cast<float>(d);
}

static void decode_tq2_0(const std::byte* block, float* out) {  // qs[64]@0, d f16@64
  f16 d;
  std::memcpy(&d, block + 64, sizeof d);
  for (int i = 0; i < 256; i++) {
    int digit = std::to_integer<int>(block[i / 128 * 32 + i % 32]) >> i % 128 / 32 * 2 & 3;
    out[i] = static_cast<float>(digit - 1) * static_cast<float>(d);
  }
}

namespace {

// A tensor type of the file: a dtype, or a name and, if we can decode it, the function for that.
struct TensorType {
  uint32_t id;
  std::string_view name;
  DType dtype = DType::kNone;
  int64_t block = 0, bytes = 0;
  void (*decode)(const std::byte* block, float* out) = nullptr;
};

constexpr TensorType kTypes[] = {
    {0, "f32", DType::kF32},
    {1, "f16", DType::kF16},
    {2, "q4_0", DType::kQ4_0},
    {3, "q4_1", DType::kQ4_1},
    {6, "q5_0", DType::kQ5_0},
    {7, "q5_1", DType::kQ5_1},
    {8, "q8_0", DType::kQ8_0},
    {9, "q8_1"},
    {10, "q2_k", DType::kQ2_K},
    {11, "q3_k", DType::kQ3_K},
    {12, "q4_k", DType::kQ4_K},
    {13, "q5_k", DType::kQ5_K},
    {14, "q6_k", DType::kQ6_K},
    {15, "q8_k", DType::kQ8_K},
    {16, "iq2_xxs"},
    {17, "iq2_xs"},
    {18, "iq3_xxs"},
    {19, "iq1_s"},
    {20, "iq4_nl", DType::kIQ4_NL},
    {21, "iq3_s"},
    {22, "iq2_s"},
    {23, "iq4_xs", DType::kIQ4_XS},
    {24, "i8", DType::kI8},
    {25, "i16", DType::kI16},
    {26, "i32", DType::kI32},
    {27, "i64", DType::kI64},
    {28, "f64", DType::kF64},
    {29, "iq1_m"},
    {30, "bf16", DType::kBF16},
    {34, "tq1_0", DType::kNone, 256, 54, decode_tq1_0},
    {35, "tq2_0", DType::kNone, 256, 66, decode_tq2_0},
    {39, "mxfp4", DType::kMXFP4},
    {40, "nvfp4", DType::kNVFP4},
};

// ---- reading bytes in order ----

class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  size_t at() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  template <class T>
  Result<T> number() {
    T value;
    if (left() < sizeof value) return damaged(format("byte {}: the file ends within its header", at_));
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  // A view of the file, without NUL.
  Result<std::string_view> text() {
    auto length = RLX_TRY(number<uint64_t>());
    if (length > left())
      return damaged(format("byte {}: a text of {}, but {} are left", at_, plural(length, "byte"), left()));
    std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<size_t>(length));
    at_ += text.size();
    return text;
  }

  // Reads how many items follow. Each has at least `least` bytes, which bounds the number.
  Result<uint64_t> count(size_t least, std::string_view what) {
    auto count = RLX_TRY(number<uint64_t>());
    if (count > left() / least)
      return damaged(format("byte {}: {} {}, but {} bytes are left", at_, count, what, left()));
    return count;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

// ---- metadata ----

enum Kind : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };
constexpr size_t kLeast[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // bytes of one, by kind
constexpr int kMaxNested = 4;                                          // arrays in arrays
constexpr uint64_t kMaxKeys = 10'000;

class Reader {
 public:
  Reader(const Source& source, const ImportOptions& options) : source_(source), options_(options), in_(source.bytes) {}

  Result<Gguf> read() {
    RLX_TRY(read_counts());
    for (uint64_t i = 0; i < keys_; i++) RLX_TRY(read_key());
    for (uint64_t i = 0; i < tensors_; i++) RLX_TRY(read_tensor());
    RLX_TRY(place_tensors());
    return std::move(out_);
  }

 private:
  Status read_counts() {
    if (!is_gguf(source_.bytes)) return damaged("the first bytes are not 'GGUF'");
    RLX_TRY(in_.number<uint32_t>());
    auto version = RLX_TRY(in_.number<uint32_t>());
    if (version != 2 && version != 3)
      return Status(Code::kUnsupported, (version & 0xffff) == 0 && version != 0
                                            ? std::string("gguf: a file in big-endian order")
                                            : format("gguf: version {}; known are 2 and 3", version));
    tensors_ = RLX_TRY(in_.number<uint64_t>());
    keys_ = RLX_TRY(in_.count(8 + 4 + 1, "keys"));
    if (tensors_ > in_.left() / (8 + 4 + 4 + 8))
      return damaged(format("{} tensors, but {} bytes are left", tensors_, in_.left()));
    if (keys_ > kMaxKeys) return damaged(format("{} keys; at most {}", keys_, kMaxKeys));
    return {};
  }

  static Status check_name(std::string_view name, std::unordered_set<std::string_view>& seen, const char* what) {
    if (name.find('\0') != name.npos) return damaged(format("{} with a NUL in its name", what));
    if (!is_utf8(name)) return damaged(format("{} with a name that is not UTF-8: '{}'", what, readable(name)));
    if (!seen.insert(name).second)
      return damaged(format("{} '{}' stands there twice", what, name)).with("value", std::string(name));
    return {};
  }

  Status read_key() {
    std::string_view key = RLX_TRY(in_.text());
    RLX_TRY(check_name(key, names_of_keys_, "a key"));
    auto kind = RLX_TRY(in_.number<uint32_t>());
    if (key == "general.alignment") return read_alignment(kind);
    if (kind == kString) {
      out_.metadata.emplace_back(key, RLX_TRY(in_.text()));
      return {};
    }
    JsonWriter json;
    RLX_TRY(read_value(kind, json, 0));
    std::string text = std::move(json).take();
    text.pop_back();  // a document ends its line
    out_.metadata.emplace_back(key, std::move(text));
    return {};
  }

  Status read_alignment(uint32_t kind) {
    if (kind != kU32) return damaged("general.alignment is not a u32");
    alignment_ = RLX_TRY(in_.number<uint32_t>());
    if (!std::has_single_bit(alignment_)) return damaged(format("an alignment of {} bytes", alignment_));
    out_.metadata.emplace_back("general.alignment", std::to_string(alignment_));
    return {};
  }

  template <class T>
  Status read_number(JsonWriter& json) {
    auto number = RLX_TRY(in_.number<T>());
    if constexpr (std::is_floating_point_v<T>)
      json.value(static_cast<double>(number));
    else if constexpr (std::is_signed_v<T>)
      json.value(int64_t{number});
    else
      json.value(uint64_t{number});
    return {};
  }

  Status read_value(uint32_t kind, JsonWriter& json, int depth) {
    switch (kind) {
      case kU8: return read_number<uint8_t>(json);
      case kI8: return read_number<int8_t>(json);
      case kU16: return read_number<uint16_t>(json);
      case kI16: return read_number<int16_t>(json);
      case kU32: return read_number<uint32_t>(json);
      case kI32: return read_number<int32_t>(json);
      case kU64: return read_number<uint64_t>(json);
      case kI64: return read_number<int64_t>(json);
      case kF32: return read_number<float>(json);
      case kF64: return read_number<double>(json);
      case kBool: json.value(RLX_TRY(in_.number<uint8_t>()) != 0); return {};
      case kString: json.value(RLX_TRY(in_.text())); return {};
      case kArray: return read_array(json, depth);
      default: return damaged(format("byte {}: unknown kind of value {}", in_.at() - 4, kind));
    }
  }

  Status read_array(JsonWriter& json, int depth) {
    if (depth == kMaxNested) return damaged(format("byte {}: arrays nested deeper than {}", in_.at(), kMaxNested));
    auto kind = RLX_TRY(in_.number<uint32_t>());
    if (kind >= std::size(kLeast)) return damaged(format("byte {}: unknown kind of value {}", in_.at() - 4, kind));
    uint64_t count = RLX_TRY(in_.count(kLeast[kind], "elements"));
    json.begin_array();
    for (uint64_t i = 0; i < count; i++) RLX_TRY(read_value(kind, json, depth + 1));
    json.end_array();
    return {};
  }

  // ---- tensors ----

  struct Entry {
    std::string_view name;
    const TensorType* type;
    std::vector<int64_t> dims;  // the last varies fastest
    uint64_t offset = 0, bytes = 0;
  };

  Status read_tensor() {
    Entry entry;
    entry.name = RLX_TRY(in_.text());
    RLX_TRY(check_name(entry.name, names_of_tensors_, "a tensor"));
    auto rank = RLX_TRY(in_.number<uint32_t>());
    if (rank > kMaxRank) return of(entry, Code::kUnsupported, format("rank {}; at most {}", rank, kMaxRank));
    for (uint32_t i = 0; i < rank; i++) {
      auto dim = RLX_TRY(in_.number<uint64_t>());
      if (dim > INT64_MAX) return of(entry, Code::kData, format("a size of {}", dim));
      entry.dims.insert(entry.dims.begin(), static_cast<int64_t>(dim));
    }
    auto id = RLX_TRY(in_.number<uint32_t>());
    entry.offset = RLX_TRY(in_.number<uint64_t>());
    entry.type = std::find_if(std::begin(kTypes), std::end(kTypes), [id](const TensorType& it) { return it.id == id; });
    if (entry.type == std::end(kTypes)) return of(entry, Code::kUnsupported, format("elements of the type {}", id));
    RLX_TRY(measure(entry));
    entries_.push_back(std::move(entry));
    return {};
  }

  static Status of(const Entry& entry, Code code, const std::string& what) {
    return Status(code, format("gguf: tensor '{}': {}", entry.name, what)).with("value", std::string(entry.name));
  }

  Status measure(Entry& entry) const {
    const TensorType& type = *entry.type;
    bool is_ours = type.dtype != DType::kNone;
    if (!is_ours && !type.decode)
      return of(entry, Code::kUnsupported, format("elements of the type {}, which cannot be decoded", type.name));
    if (!is_ours && !options_.decode)
      return of(entry, Code::kUnsupported,
                format("elements of the type {}, which is not a dtype; with the import option decode=1 they become f32",
                       type.name))
          .with("expected", "decode=1");
    int64_t block = is_ours ? info(type.dtype).block : type.block,
            bytes = is_ours ? info(type.dtype).bytes : type.bytes;
    if ((entry.dims.empty() ? 1 : entry.dims.back()) % block != 0)
      return of(
          entry, Code::kData,
          format("rows of {} elements are not whole blocks of {}", entry.dims.empty() ? 1 : entry.dims.back(), block));
    auto count = element_count(std::span<const int64_t>(entry.dims));
    if (!count || *count / block > INT64_MAX / bytes)
      return of(entry, Code::kData, "more elements than 63 bits can count");
    entry.bytes = static_cast<uint64_t>(*count / block * bytes);
    return {};
  }

  Status place_tensors() {
    size_t header = in_.at(), padding = (alignment_ - header % alignment_) % alignment_;
    auto data = source_.bytes.subspan(std::min(header + padding, source_.bytes.size()));
    std::vector<const Entry*> sorted;
    for (const Entry& entry : entries_) {
      if (entry.offset % alignment_ != 0)
        return of(entry, Code::kData, format("its offset {} is not aligned to {}", entry.offset, alignment_));
      if (entry.offset > data.size() || entry.bytes > data.size() - entry.offset)
        return of(entry, Code::kData,
                  format("{} bytes at {} are not within the {} bytes of data", entry.bytes, entry.offset, data.size()));
      if (entry.bytes) sorted.push_back(&entry);
    }
    std::sort(sorted.begin(), sorted.end(), [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < sorted.size(); i++)
      if (sorted[i]->offset - sorted[i - 1]->offset < sorted[i - 1]->bytes)
        return of(*sorted[i], Code::kData, format("it overlaps '{}'", sorted[i - 1]->name));
    for (const Entry& entry : entries_) {
      auto bytes = data.subspan(static_cast<size_t>(entry.offset), static_cast<size_t>(entry.bytes));
      auto tensor =
          entry.type->decode ? decoded(entry, bytes) : tensor_over(source_, bytes, entry.type->dtype, entry.dims);
      if (!tensor.ok()) return of(entry, tensor.status().code(), std::string(tensor.status().message()));
      out_.tensors.emplace_back(entry.name, *std::move(tensor));
    }
    return {};
  }

  // The result is at most some twenty times larger than its bytes in the file.
  Result<Tensor> decoded(const Entry& entry, std::span<const std::byte> bytes) const {
    const TensorType& type = *entry.type;
    Tensor tensor =
        RLX_TRY(options_.make ? options_.make(DType::kF32, entry.dims) : Tensor::create(DType::kF32, entry.dims));
    for (size_t i = 0; i < bytes.size() / static_cast<size_t>(type.bytes); i++)
      type.decode(bytes.data() + i * static_cast<size_t>(type.bytes),
                  tensor.as<float>() + i * static_cast<size_t>(type.block));
    return tensor;
  }

  const Source& source_;
  const ImportOptions& options_;
  Cursor in_;
  Gguf out_;
  uint64_t tensors_ = 0, keys_ = 0;
  uint32_t alignment_ = 32;
  std::unordered_set<std::string_view> names_of_keys_, names_of_tensors_;
  std::vector<Entry> entries_;
};

}  // namespace

bool is_gguf(std::span<const std::byte> bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "GGUF", 4) == 0;
}

Result<Gguf> read_gguf(const Source& source, const ImportOptions& options) {
  return Reader(source, options).read();
}

}  // namespace rlx
