// SPDX-License-Identifier: Apache-2.0
// Safetensors files: tensors in order, and damage.
#include "import/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>

namespace rlx {

static Source file_of(const std::string& header, size_t data_bytes) {
  uint64_t length = header.size();
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  auto owner = std::make_shared<const std::string>(bytes + header + std::string(data_bytes, '\1'));
  return {std::as_bytes(std::span(*owner)), owner, {}};
}

TEST(safetensors, tensors_are_views_in_the_order_of_the_header) {
  Source source = file_of(R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[3,11]},)"
                          R"("b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},)"
                          R"("none":{"dtype":"F16","shape":[0],"data_offsets":[0,0]}})",
                          11);
  EXPECT_TRUE(is_safetensors(source.bytes));
  EXPECT_TRUE(is_safetensors(source.bytes.first(9))) << "the file ends in its header";
  EXPECT_FALSE(is_safetensors(source.bytes.first(8)));
  auto file = read_safetensors(source);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_EQ(file->tensors.size(), 3u);
  EXPECT_EQ(file->tensors[0].first, "w");
  EXPECT_EQ(file->tensors[0].second.dims()[0], 2);
  EXPECT_EQ(file->tensors[1].second.data(), source.bytes.data() + source.bytes.size() - 11);
  EXPECT_EQ(file->metadata[0].second, "pt");
}

TEST(safetensors, damage_names_what_and_where) {
  auto message = [](const std::string& header, size_t data_bytes) {
    auto file = read_safetensors(file_of(header, data_bytes));
    EXPECT_FALSE(file.ok()) << header;
    return file.ok() ? "" : std::string(file.status().message());
  };
  std::string good = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(message(good, 5), "safetensors: 5 bytes of data, of which the tensors take 4");
  EXPECT_EQ(message(good, 3), "safetensors: tensor 'w': its data_offsets are not within the 3 bytes of data");
  EXPECT_EQ(message(good.substr(1), 4), "safetensors: the header is not a JSON object");
  EXPECT_EQ(message(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
            "safetensors: tensor 'w': 4 bytes for a f32[2]");
  EXPECT_EQ(message(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4),
            "safetensors: tensor 'w': 'shape' is not a list of sizes");
  EXPECT_EQ(message(R"({"w":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}})", 4),
            "safetensors: tensor 'w': elements of the type 'F4'");
  EXPECT_EQ(
      message(
          R"({"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"v":{"dtype":"I8","shape":[1],"data_offsets":[2,3]}})",
          3),
      "safetensors: the tensors overlap or leave a gap at byte 1 of the data");
  EXPECT_EQ(
      message(
          R"({"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]},"w":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}})",
          1),
      "safetensors: the header has a name twice");
  EXPECT_EQ(message(R"({"w":)" + std::string(1000, '[') + std::string(1000, ']') + "}", 0),
            "safetensors: the header nests deeper than {tensor: {key: [numbers]}}");
  EXPECT_EQ(message(R"({"w":[]})", 0), "safetensors: tensor 'w': no description");
  EXPECT_EQ(read_safetensors({}).status().message(), "safetensors: a file of 0 bytes: the header's length is missing");
}

TEST(safetensors, no_cut_and_no_changed_byte_is_fatal) {
  Source source = file_of(R"({"__metadata__":{"a":"b"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}})", 8);
  for (size_t size = 0; size < source.bytes.size(); size++) {
    Source cut{source.bytes.first(size), source.owner, {}};
    EXPECT_EQ(read_safetensors(cut).status().code(), Code::kData);
  }
  for (size_t at = 0; at < source.bytes.size(); at++) {
    for (int value = 0; value < 256; value++) {
      std::string bytes(reinterpret_cast<const char*>(source.bytes.data()), source.bytes.size());
      bytes[at] = static_cast<char>(value);
      auto owner = std::make_shared<const std::string>(bytes);
      auto file = read_safetensors({std::as_bytes(std::span(*owner)), owner, {}});
      EXPECT_TRUE(!file.ok() || file->tensors.size() <= 2);
    }
  }
}

}  // namespace rlx
