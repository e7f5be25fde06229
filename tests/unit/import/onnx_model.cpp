// SPDX-License-Identifier: Apache-2.0
// From the bytes of an ONNX file to its fields and tensors, and what damage is called.
#include "import/onnx/model.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "import/onnx/tensor.h"
#include "protobuf_writer.h"

namespace rlx::onnx {

static Message model_with(const Message& graph) {
  return Message().number(1, 8).sub(7, graph).sub(8, Message().number(2, 17));
}

static std::string failure_of(const Message& model) {
  auto parsed = parse_model(model.span());
  EXPECT_FALSE(parsed.ok());
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().code(), Code::kData);
  return std::string(parsed.status().message());
}

TEST(onnx_model, reads_every_kind_of_field) {
  Message dims = Message().sub(1, Message().text(2, "batch")).sub(1, Message().number(1, 3)).sub(1, Message());
  Message input = Message().text(1, "x").sub(2, Message().sub(1, Message().number(1, 1).sub(2, dims)));
  Message weight = Message().packed(1, {2}).number(2, 1).text(8, "w").raw(9, {1.f, 2.f});
  Message node = Message().text(1, "x").text(1, "").text(2, "y").text(3, "n").text(4, "Foo").text(7, "dom");
  node.sub(5, Message().text(1, "alpha").f32(2, 0.5f).number(20, 1));
  node.sub(5, Message().text(1, "perm").packed(8, {0, -1}).number(8, 5).number(20, 7));
  node.sub(5, Message().text(1, "then").sub(6, Message().text(2, "inner")).number(20, 5));
  Message model = model_with(Message().sub(1, node).text(2, "g").sub(5, weight).sub(11, input));
  model.number(99, 1).text(98, "unknown fields are skipped");

  auto parsed = parse_model(model.span());
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->ir_version, 8);
  ASSERT_EQ(parsed->opset_import.size(), 1u);
  EXPECT_EQ(parsed->opset_import[0].version, 17);
  const GraphProto& graph = parsed->graph;
  EXPECT_EQ(graph.name, "g");
  ASSERT_EQ(graph.node.size(), 1u);
  EXPECT_EQ(graph.node[0].input, (std::vector<std::string_view>{"x", ""}));
  EXPECT_EQ(graph.node[0].domain, "dom");
  ASSERT_EQ(graph.node[0].attribute.size(), 3u);
  EXPECT_EQ(graph.node[0].attribute[0].f, 0.5f);
  EXPECT_EQ(graph.node[0].attribute[1].ints, (std::vector<int64_t>{0, -1, 5}));
  EXPECT_EQ(graph.node[0].attribute[2].graphs.at(0).name, "inner");
  const auto& shape = graph.input.at(0).type.tensor_type.at(0).shape.at(0).dim;
  ASSERT_EQ(shape.size(), 3u);
  EXPECT_EQ(shape[0].dim_param, "batch");
  EXPECT_EQ(shape[1].dim_value, 3);
  EXPECT_EQ(shape[2].dim_value, -1);
  EXPECT_EQ(graph.initializer.at(0).raw_data.size(), 8u);
}

TEST(onnx_model, a_damaged_file_names_the_byte_and_the_message) {
  Message node = Message().text(4, "Foo").number(5, 1);  // an attribute that is a number
  EXPECT_EQ(failure_of(model_with(Message().sub(1, Message()).sub(1, node))),
            "ONNX model.graph.node[1] at byte 14: the field 'attribute' is not a message");
  EXPECT_EQ(failure_of(Message().text(2, std::string_view("a\0b", 3))),
            "ONNX model at byte 2: the field 'producer_name' is not UTF-8 text");
  EXPECT_EQ(failure_of(Message().text(2, "\xc0\x80")),
            "ONNX model at byte 2: the field 'producer_name' is not UTF-8 text");
  EXPECT_EQ(failure_of(Message()), "ONNX model: no graph: these bytes are not an ONNX model");

  std::string bytes = model_with(Message().text(2, "graph")).bytes();
  auto cut = parse_model(std::as_bytes(std::span(bytes)).first(6));
  EXPECT_EQ(cut.status().message(), "ONNX model at byte 2: a field of 7 bytes, but 2 are left");
  EXPECT_EQ(*cut.status().detail("offset"), "2");
}

TEST(onnx_model, nesting_is_limited) {
  Message graph;
  for (int i = 0; i < 40; i++) graph = Message().sub(1, Message().sub(5, Message().sub(6, graph)));
  std::string message = failure_of(model_with(graph));
  EXPECT_NE(message.find("messages nest more than 100 deep"), message.npos) << message;
}

static Result<Tensor> read(const Message& tensor, const std::string& path = "") {
  auto bytes = std::make_shared<const std::string>(model_with(Message().sub(5, tensor)).bytes());
  Source source{std::as_bytes(std::span(*bytes)), bytes, path};
  if (!path.empty()) source.external = std::make_shared<ExternalFiles>(path);
  auto model = parse_model(source.bytes);
  if (!model.ok()) return std::move(model).status();
  return TensorReader(source).read(model->graph.initializer.at(0));
}

template <class T>
static void expect_elements(const Result<Tensor>& tensor, DType dtype, std::vector<T> elements) {
  ASSERT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->dtype(), dtype);
  ASSERT_EQ(tensor->bytes(), elements.size() * sizeof(T));
  for (size_t i = 0; i < elements.size(); i++) EXPECT_EQ(tensor->as<T>()[i], elements[i]);
}

TEST(onnx_tensor, elements_stand_raw_packed_or_one_by_one) {
  expect_elements<float>(read(Message().number(1, 2).number(2, 1).raw(9, {1.f, 2.f})), DType::kF32, {1, 2});
  expect_elements<float>(read(Message().number(1, 2).number(2, 1).raw(4, {1.f, 2.f})), DType::kF32, {1, 2});
  expect_elements<float>(read(Message().number(1, 2).number(2, 1).f32(4, 1).f32(4, 2)), DType::kF32, {1, 2});
  expect_elements<int64_t>(read(Message().number(1, 2).number(2, 7).packed(7, {-1, 5})), DType::kI64, {-1, 5});
  expect_elements<int8_t>(read(Message().number(1, 2).number(2, 3).packed(5, {-1, 5})), DType::kI8, {-1, 5});
  expect_elements<uint16_t>(read(Message().number(2, 10).packed(5, {0x3c00})), DType::kF16, {0x3c00});
  expect_elements<float>(read(Message().number(1, 0).number(2, 1)), DType::kF32, {});
  expect_elements<float>(read(Message().number(1, 1).number(2, 14).raw(4, {1.f, 2.f})), DType::kC64, {1, 2});
}

TEST(onnx_tensor, what_cannot_be_read_is_named) {
  auto message = [](const Result<Tensor>& tensor) { return std::string(tensor.status().message()); };
  auto w = [] { return Message().text(8, "w"); };
  EXPECT_EQ(message(read(w().number(1, 3).number(2, 1).raw(9, {1.f, 2.f}))), "tensor 'w': 8 bytes for a f32[3]");
  EXPECT_EQ(message(read(w().number(2, 8))), "tensor 'w': elements of the ONNX type string");
  EXPECT_EQ(message(read(w().number(2, 99))), "tensor 'w': there is no ONNX element type 99");
  EXPECT_EQ(message(read(w().packed(1, {-2}).number(2, 1))), "tensor 'w': 0 bytes for a f32[-2]");
  EXPECT_NE(message(read(w().packed(1, {1ll << 40, 1ll << 40}).number(2, 1))).find("0 bytes for a f32["),
            std::string::npos);
  EXPECT_NE(message(read(w().number(1, 1).number(2, 1).packed(7, {1}))).find("not of the tensor's type"),
            std::string::npos);
}

class External : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("rlx_external_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "model" / "data");
    for (const char* name : {"model/m.onnx", "model/data/w.bin", "secret.bin"})
      std::ofstream(folder_ / name, std::ios::binary).write("\0\0\0\0\0\0\x80\x3f", 8);
    std::filesystem::create_symlink(folder_ / "secret.bin", folder_ / "model" / "link.bin");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Result<Tensor> read_at(std::string_view location, std::string_view offset = "4") {
    Message tensor = Message().text(8, "w").number(1, 1).number(2, 1).number(14, 1);
    tensor.sub(13, Message().text(1, "location").text(2, location));
    tensor.sub(13, Message().text(1, "offset").text(2, offset)).sub(13, Message().text(1, "length").text(2, "4"));
    return read(tensor, (folder_ / "model" / "m.onnx").string());
  }
  std::filesystem::path folder_;
};

TEST_F(External, data_lies_in_the_models_folder) {
  expect_elements<float>(read_at("data/w.bin"), DType::kF32, {1});
  expect_elements<float>(read_at("data/../data/w.bin"), DType::kF32, {1});
  for (const char* outside : {"../secret.bin", "/etc/passwd", "link.bin", "", "data/../../secret.bin"})
    EXPECT_EQ(read_at(outside).status().code(), Code::kDenied) << outside;
  EXPECT_EQ(read_at("none.bin").status().code(), Code::kNotFound);
}

TEST_F(External, a_range_outside_the_file_is_damage) {
  for (const char* offset : {"5", "18446744073709551615", "x", "-4", ""})
    EXPECT_EQ(read_at("data/w.bin", offset).status().code(), Code::kData) << offset;
}

}  // namespace rlx::onnx
