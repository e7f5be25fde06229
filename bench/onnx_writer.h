// SPDX-License-Identifier: Apache-2.0
// Writes ONNX models into memory, so that librlx and its peer read the same bytes. Field numbers are those of
// onnx.proto; every value is f32 unless its name says otherwise.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bench {

class Message {
 public:
  Message& number(uint32_t field, int64_t value) {
    varint(field << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& text(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_ += value;
    return *this;
  }
  Message& sub(uint32_t field, const Message& message) { return text(field, message.bytes_); }
  template <class T>
  Message& raw(uint32_t field, std::span<const T> values) {
    return text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  const std::string& bytes() const { return bytes_; }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }
  std::string bytes_;
};

class OnnxWriter {
 public:
  enum Type : int { kF32 = 1, kU8 = 2, kI64 = 7, kBool = 9 };  // as ONNX numbers them
  using Names = std::vector<std::string>;
  using Attributes = std::vector<Message>;

  // Dims as text: a number, or the name of an open size.
  void input(const std::string& name, Type type, const std::vector<std::string>& dims) {
    Message shape;
    for (const std::string& dim : dims) {
      bool is_number = dim.find_first_not_of("0123456789") == dim.npos;
      shape.sub(1, is_number ? Message().number(1, std::stoll(dim)) : Message().text(2, dim));
    }
    graph_.sub(11, Message().text(1, name).sub(2, typed(Message().number(1, type).sub(2, shape))));
  }
  void output(const std::string& name, Type type = kF32) {
    graph_.sub(12, Message().text(1, name).sub(2, typed(Message().number(1, type))));
  }
  void f32(const std::string& name, const std::vector<int64_t>& dims, std::span<const float> values) {
    initialiser(name, kF32, dims, Message().raw(9, values));
  }
  void i64(const std::string& name, const std::vector<int64_t>& dims, std::span<const int64_t> values) {
    initialiser(name, kI64, dims, Message().raw(9, values));
  }

  void u8(const std::string& name, const std::vector<int64_t>& dims, std::span<const uint8_t> values) {
    initialiser(name, kU8, dims, Message().raw(9, values));
  }

  // Adds a node and returns the new name of its first output. Names of the others are that and a number.
  std::string node(const char* op, const Names& in, const Attributes& attributes = {}, const char* domain = "",
                   int outputs = 1) {
    std::string out = "v" + std::to_string(++nodes_);
    Message node;
    for (const std::string& name : in) node.text(1, name);
    node.text(2, out);
    for (int i = 1; i < outputs; ++i) node.text(2, out + "." + std::to_string(i));
    node.text(4, op).text(7, domain);
    for (const Message& attribute : attributes) node.sub(5, attribute);
    graph_.sub(1, node);
    return out;
  }
  static Message attribute(const char* name, int64_t value) {
    return Message().text(1, name).number(3, value).number(20, 2);
  }
  static Message attribute(const char* name, const std::vector<int64_t>& values) {
    Message list = Message().text(1, name).number(20, 7);
    for (int64_t value : values) list.number(8, value);
    return list;
  }
  static Message attribute(const char* name, std::string_view word) {
    return Message().text(1, name).text(4, word).number(20, 3);
  }
  static Message attribute(const char* name, const OnnxWriter& body) {
    return Message().text(1, name).sub(6, body.graph()).number(20, 5);
  }

  int64_t node_count() const { return nodes_; }
  std::vector<uint8_t> model() const {
    constexpr int kIrVersion = 8, kOpset = 17;
    Message contrib = Message().text(1, "com.microsoft").number(2, 1);
    std::string bytes =
        Message().number(1, kIrVersion).sub(7, graph()).sub(8, Message().number(2, kOpset)).sub(8, contrib).bytes();
    return {bytes.begin(), bytes.end()};
  }

 private:
  Message graph() const {
    Message graph = graph_;
    return graph.text(2, "bench");
  }
  static Message typed(const Message& tensor) { return Message().sub(1, tensor); }
  void initialiser(const std::string& name, Type type, const std::vector<int64_t>& dims, const Message& data) {
    Message tensor;
    for (int64_t dim : dims) tensor.number(1, dim);
    tensor.number(2, type).text(8, name);
    graph_.text(5, tensor.bytes() + data.bytes());
  }
  Message graph_;
  int64_t nodes_ = 0;
};

}  // namespace bench
