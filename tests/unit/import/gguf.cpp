// SPDX-License-Identifier: Apache-2.0
// GGUF files: tensors as a peer decodes them, metadata, and damage.
#include "import/gguf.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

#include "import/format.h"
#include "ops/blocks.h"
#include "tests/support/paths.h"

namespace rlx {

// ---- files by hand ----

template <class T>
static std::string raw(T number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof number);
}
static std::string text(const std::string& words) {
  return raw<uint64_t>(words.size()) + words;
}
static std::string tensor(const std::string& name, const std::vector<uint64_t>& dims, uint32_t type, uint64_t offset) {
  std::string entry = text(name) + raw<uint32_t>(static_cast<uint32_t>(dims.size()));
  for (uint64_t dim : dims) entry += raw(dim);
  return entry + raw(type) + raw(offset);
}
static std::string u32_key(const std::string& key, uint32_t value) {
  return text(key) + raw<uint32_t>(4) + raw(value);
}

struct Parts {
  std::vector<std::string> keys, tensors;
  size_t data = 0;
  uint32_t version = 3;
  size_t alignment = 32;
};
static std::string file_of(const Parts& parts) {
  std::string file =
      "GGUF" + raw(parts.version) + raw<uint64_t>(parts.tensors.size()) + raw<uint64_t>(parts.keys.size());
  for (const std::string& key : parts.keys) file += key;
  for (const std::string& entry : parts.tensors) file += entry;
  file.resize((file.size() + parts.alignment - 1) / parts.alignment * parts.alignment);
  for (size_t i = 0; i < parts.data; i++) file += static_cast<char>(i);
  return file;
}
static Result<Gguf> read(const std::string& bytes, const ImportOptions& options = {}) {
  auto owner = std::make_shared<const std::string>(bytes);
  return read_gguf({std::as_bytes(std::span(*owner)), owner, {}}, options);
}
static std::string failure(const std::string& bytes) {
  auto file = read(bytes);
  EXPECT_FALSE(file.ok());
  return file.ok() ? "" : std::string(file.status().message());
}

// ---- what PyPI's gguf wrote: tests/samples/make_gguf.py ----

static std::string sample() {
  std::ifstream file(test::test_path("models/blocks.gguf"), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Numbers that NumPy made of the blocks; where they are zero, the sign is not told.
TEST(gguf, every_type_of_blocks_is_what_its_peer_decodes) {
  auto file = read(sample(), {.decode = true});
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::map<std::string, Tensor> tensors(file->tensors.begin(), file->tensors.end());
  int blocks = 0;
  for (const auto& [name, expected] : tensors) {
    if (!name.ends_with(".f32")) continue;
    std::string type = name.substr(0, name.size() - 4);
    const Tensor& given = tensors.at(type);
    bool is_dtype = find_dtype(type).has_value();
    ASSERT_EQ(given.dtype(), is_dtype ? *find_dtype(type) : DType::kF32) << type;
    ASSERT_EQ(given.dims().back(), 256) << type;
    std::vector<float> numbers(static_cast<size_t>(given.count()));
    if (is_dtype)
      decode_blocks(given.dtype(), given.data(), given.count(), numbers.data());
    else
      std::memcpy(numbers.data(), given.data(), given.bytes());
    std::vector<float> wanted(numbers.size());
    std::memcpy(wanted.data(), expected.data(), expected.bytes());
    for (size_t i = 0; i < numbers.size(); i++) ASSERT_EQ(numbers[i], wanted[i]) << type << " " << i;
    blocks += is_dtype;
  }
  EXPECT_EQ(blocks, 15);
  EXPECT_EQ(type_text(tensors.at("halves").dtype(), tensors.at("halves").dims()), "f16[2,3]");
  EXPECT_EQ(type_text(tensors.at("numbers").dtype(), tensors.at("numbers").dims()), "i64[3]");
}

TEST(gguf, metadata_of_every_kind_are_texts) {
  auto file = read(sample(), {.decode = true});
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::map<std::string, std::string> metadata(file->metadata.begin(), file->metadata.end());
  EXPECT_EQ(metadata["text"], "blocks");
  EXPECT_EQ(metadata["u8"], "255");
  EXPECT_EQ(metadata["i8"], "-128");
  EXPECT_EQ(metadata["u64"], "18446744073709551615");
  EXPECT_EQ(metadata["i64"], "-9223372036854775808");
  EXPECT_EQ(metadata["f32"], "0.5");
  EXPECT_EQ(metadata["f64"], "0.1");
  EXPECT_EQ(metadata["bool"], "true");
  EXPECT_EQ(metadata["tokens"], "[\n \"a\",\n \"b\"\n]");
  EXPECT_EQ(metadata["numbers"], "[\n 1,\n 2,\n 3\n]");
}

TEST(gguf, a_type_that_is_no_dtype_is_decoded_if_that_is_asked_for) {
  EXPECT_EQ(
      failure(sample()),
      "gguf: tensor 'tq1_0': elements of the type tq1_0, which is not a dtype; with the import option decode=1 they "
      "become f32");
  auto options = parse_import_options({{"decode", int64_t{1}}});
  ASSERT_TRUE(options.ok()) << options.status().message();
  auto owner = std::make_shared<const std::string>(sample());
  Source source{std::as_bytes(std::span(*owner)), owner, {}};
  options->with_graph = false;
  EXPECT_TRUE(import_source(source, "", *options).ok());
  EXPECT_FALSE(import_source(source, "gguf", {.with_graph = false}).ok());
  EXPECT_EQ(failure(file_of({.tensors = {tensor("w", {256}, 16, 0)}, .data = 66})),
            "gguf: tensor 'w': elements of the type iq2_xxs, which cannot be decoded");
  EXPECT_EQ(failure(file_of({.tensors = {tensor("w", {256}, 77, 0)}, .data = 66})),
            "gguf: tensor 'w': elements of the type 77");
}

TEST(gguf, what_is_decoded_lies_in_memory_that_the_options_make) {
  int64_t made = 0;
  auto make = [&](DType dtype, std::span<const int64_t> dims) {
    made++;
    return Tensor::create(dtype, dims);
  };
  ASSERT_TRUE(read(sample(), {.decode = true, .make = make}).ok());
  EXPECT_GT(made, 0);
  auto refuse = [](DType, std::span<const int64_t>) -> Result<Tensor> { return Status::no_memory(); };
  EXPECT_EQ(read(sample(), {.decode = true, .make = refuse}).status().code(), Code::kNoMemory);
}

// ---- layout ----

TEST(gguf, tensors_are_views_at_their_alignment) {
  for (uint32_t version : {2u, 3u}) {
    std::string bytes =
        file_of({.keys = {u32_key("general.alignment", 64)},
                 .tensors = {tensor("b", {3, 2}, 24, 64), tensor("a", {}, 0, 0), tensor("none", {0, 4}, 0, 0)},
                 .data = 70,
                 .version = version,
                 .alignment = 64});
    auto file = read(bytes);
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_EQ(file->tensors.size(), 3u);
    const Tensor& b = file->tensors[0].second;
    EXPECT_EQ(type_text(b.dtype(), b.dims()), "i8[2,3]") << "sizes stand with the fastest first";
    EXPECT_EQ(std::to_integer<int>(b.data()[0]), 64);
    EXPECT_EQ(file->tensors[1].second.rank(), 0u);
    EXPECT_EQ(file->tensors[2].second.count(), 0);
    EXPECT_EQ(file->metadata[0].second, "64");
  }
}

TEST(gguf, damage_names_what_and_where) {
  auto of_tensors = [](const std::vector<std::string>& tensors, size_t data) {
    return failure(file_of({.tensors = tensors, .data = data}));
  };
  EXPECT_EQ(of_tensors({tensor("w", {4}, 0, 0)}, 15),
            "gguf: tensor 'w': 16 bytes at 0 are not within the 15 bytes of data");
  EXPECT_EQ(of_tensors({tensor("w", {4}, 0, 64)}, 32),
            "gguf: tensor 'w': 16 bytes at 64 are not within the 32 bytes of data");
  EXPECT_EQ(of_tensors({tensor("w", {4}, 0, 8)}, 32), "gguf: tensor 'w': its offset 8 is not aligned to 32");
  EXPECT_EQ(of_tensors({tensor("w", {16}, 0, 0), tensor("v", {1}, 0, 32)}, 64), "gguf: tensor 'v': it overlaps 'w'");
  EXPECT_EQ(of_tensors({tensor("w", {1}, 0, 0), tensor("w", {1}, 0, 32)}, 64), "gguf: a tensor 'w' stands there twice");
  EXPECT_EQ(of_tensors({tensor("w", {16, 2}, 2, 0)}, 18),
            "gguf: tensor 'w': rows of 16 elements are not whole blocks of 32");
  EXPECT_EQ(of_tensors({tensor("w", {uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0)}, 32),
            "gguf: tensor 'w': more elements than 63 bits can count");
  EXPECT_EQ(of_tensors({tensor("w", {uint64_t{1} << 63}, 0, 0)}, 32),
            "gguf: tensor 'w': a size of 9223372036854775808");
  EXPECT_EQ(of_tensors({tensor("w", std::vector<uint64_t>(9, 1), 0, 0)}, 32), "gguf: tensor 'w': rank 9; at most 8");
  EXPECT_EQ(of_tensors({tensor(std::string("w\0x", 3), {1}, 0, 0)}, 32), "gguf: a tensor with a NUL in its name");
  EXPECT_EQ(of_tensors({tensor("w\xff", {1}, 0, 0)}, 32), "gguf: a tensor with a name that is not UTF-8: 'w\\xff'");
}

TEST(gguf, headers_are_checked_before_memory_is_taken) {
  auto header = [](uint32_t version, uint64_t tensors, uint64_t keys, const std::string& rest) {
    return failure("GGUF" + raw(version) + raw(tensors) + raw(keys) + rest);
  };
  constexpr uint64_t kMany = uint64_t{1} << 60;
  EXPECT_EQ(header(1, 0, 0, ""), "gguf: version 1; known are 2 and 3");
  EXPECT_EQ(header(3u << 24, 0, 0, ""), "gguf: a file in big-endian order");
  EXPECT_EQ(header(3, kMany, 0, ""), "gguf: 1152921504606846976 tensors, but 0 bytes are left");
  EXPECT_EQ(header(3, 0, kMany, "12345"), "gguf: byte 24: 1152921504606846976 keys, but 5 bytes are left");
  EXPECT_EQ(header(3, 0, 10'001, std::string(200'000, '\0')), "gguf: 10001 keys; at most 10000");
  EXPECT_EQ(header(3, 0, 1, raw(kMany) + "k" + raw<uint32_t>(4) + raw<uint32_t>(0)),
            "gguf: byte 32: a text of 1152921504606846976 bytes, but 9 are left");
  EXPECT_EQ(header(3, 0, 1, text("k") + raw<uint32_t>(13)), "gguf: byte 33: unknown kind of value 13");
  EXPECT_EQ(header(3, 0, 1, text("k") + raw<uint32_t>(9) + raw<uint32_t>(10) + raw(kMany)),
            "gguf: byte 49: 1152921504606846976 elements, but 0 bytes are left");
  std::string nested;
  for (int i = 0; i < 100; i++) nested += raw<uint32_t>(9) + raw<uint64_t>(1);
  EXPECT_EQ(header(3, 0, 1, text("k") + raw<uint32_t>(9) + nested), "gguf: byte 85: arrays nested deeper than 4");
  EXPECT_EQ(header(3, 0, 1, u32_key("general.alignment", 24)), "gguf: an alignment of 24 bytes");
  EXPECT_EQ(header(3, 0, 1, u32_key("general.alignment", 0)), "gguf: an alignment of 0 bytes");
  EXPECT_EQ(header(3, 0, 2, u32_key("k", 1) + u32_key("k", 1)), "gguf: a key 'k' stands there twice");
  EXPECT_EQ(failure("GGUF"), "gguf: byte 4: the file ends within its header");
}

}  // namespace rlx
