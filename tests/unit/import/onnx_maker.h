// SPDX-License-Identifier: Apache-2.0
// States an ONNX model in a few lines, so that a test shows the graph that it is about.
#pragma once

#include <concepts>
#include <string>
#include <vector>

#include "import/onnx/onnx.h"
#include "protobuf_writer.h"

namespace rlx::onnx {

class Maker {
 public:
  explicit Maker(int64_t opset = 13) : opset_(opset) {}

  // The opset of another domain.
  Maker& imports(const char* domain, uint64_t version) {
    imports_.push_back(Message().text(1, domain).number(2, version));
    return *this;
  }
  // Dims as text: a number, a name or expression, or "" for an open one.
  Maker& input(const char* name, uint64_t element_type, std::vector<std::string> dims) {
    Message shape;
    for (const std::string& dim : dims) {
      bool is_number = !dim.empty() && dim.find_first_not_of("0123456789") == dim.npos;
      Message entry;
      if (is_number) entry.number(1, std::stoull(dim));
      if (!is_number && !dim.empty()) entry.text(2, dim);
      shape.sub(1, entry);
    }
    Message type = Message().sub(1, Message().number(1, element_type).sub(2, shape));
    graph_.sub(11, Message().text(1, name).sub(2, type));
    return *this;
  }
  Maker& input_of_any_rank(const char* name, uint64_t element_type) {
    Message type = Message().sub(1, Message().number(1, element_type));
    graph_.sub(11, Message().text(1, name).sub(2, type));
    return *this;
  }
  // Of tensors of this type and any shape.
  Maker& sequence(const char* name, uint64_t element_type, bool is_optional = false) {
    Message tensor = Message().sub(1, Message().number(1, element_type));
    Message type = Message().sub(4, Message().sub(1, tensor));
    if (is_optional) type = Message().sub(9, Message().sub(1, type));
    graph_.sub(11, Message().text(1, name).sub(2, type));
    return *this;
  }
  Maker& i64(const char* name, std::vector<int64_t> dims, std::vector<int64_t> values) {
    graph_.sub(5, tensor(name, 7, dims, raw_bytes(values)));
    return *this;
  }
  Maker& f32(const char* name, std::vector<int64_t> dims, std::vector<float> values) {
    graph_.sub(5, tensor(name, 1, dims, raw_bytes(values)));
    return *this;
  }
  // Floats that lie in a file beside the model, from its first byte on.
  static Message external_tensor(const char* name, const std::vector<int64_t>& dims, const char* location) {
    Message made;
    for (int64_t dim : dims) made.number(1, static_cast<uint64_t>(dim));
    made.sub(13, Message().text(1, "location").text(2, location));
    return made.number(2, 1).text(8, name).number(14, 1);
  }
  Maker& external_f32(const char* name, const std::vector<int64_t>& dims, const char* location) {
    graph_.sub(5, external_tensor(name, dims, location));
    return *this;
  }
  // The values of a list of places; `indices` has the dims that are said.
  static Message sparse_tensor(const char* name, const std::vector<int64_t>& dims, const std::vector<float>& values,
                               const std::vector<int64_t>& index_dims, const std::vector<int64_t>& indices) {
    Message sparse = Message()
                         .sub(1, tensor(name, 1, {static_cast<int64_t>(values.size())}, raw_bytes(values)))
                         .sub(2, tensor("", 7, index_dims, raw_bytes(indices)));
    for (int64_t dim : dims) sparse.number(3, static_cast<uint64_t>(dim));
    return sparse;
  }
  Maker& sparse(const Message& sparse_tensor) {
    graph_.sub(15, sparse_tensor);
    return *this;
  }
  Maker& node(const char* op_type, std::vector<std::string> in, std::vector<std::string> out,
              std::vector<Message> attributes = {}, const char* domain = "") {
    Message node;
    for (const std::string& name : in) node.text(1, name);
    for (const std::string& name : out) node.text(2, name);
    node.text(4, op_type).text(7, domain);
    for (const Message& attribute : attributes) node.sub(5, attribute);
    graph_.sub(1, node);
    return *this;
  }
  Maker& output(const char* name) {
    graph_.sub(12, Message().text(1, name));
    return *this;
  }

  static Message attr(const char* name, std::integral auto value) {
    return Message().text(1, name).number(3, static_cast<uint64_t>(value)).number(20, 2);
  }
  static Message attr(const char* name, float value) { return Message().text(1, name).f32(2, value).number(20, 1); }
  static Message attr(const char* name, const char* value) {
    return Message().text(1, name).text(4, value).number(20, 3);
  }
  static Message attr(const char* name, const std::vector<int64_t>& values) {
    Message attribute = Message().text(1, name).number(20, 7);
    for (int64_t value : values) attribute.number(8, static_cast<uint64_t>(value));
    return attribute;
  }
  static Message attr(const char* name, const Message& tensor) {
    return Message().text(1, name).sub(5, tensor).number(20, 4);
  }
  static Message attr(const char* name, const Maker& graph) {
    return Message().text(1, name).sub(6, graph.graph_).number(20, 5);
  }

  std::string bytes() const {
    Message model = Message().number(1, 8).sub(7, graph_).sub(8, Message().number(2, static_cast<uint64_t>(opset_)));
    for (const Message& opset : imports_) model.sub(8, opset);
    return model.bytes();
  }
  Result<Imported> import(bool with_weights = true) const {
    auto owner = std::make_shared<const std::string>(bytes());
    return import_onnx({std::as_bytes(std::span(*owner)), owner, {}}, {.with_weights = with_weights});
  }

 private:
  template <class T>
  static std::string_view raw_bytes(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
  static Message tensor(const char* name, uint64_t type, const std::vector<int64_t>& dims, std::string_view raw) {
    Message made;
    for (int64_t dim : dims) made.number(1, static_cast<uint64_t>(dim));
    return made.number(2, type).text(8, name).text(9, raw);
  }
  int64_t opset_;
  std::vector<Message> imports_;
  Message graph_;
};

}  // namespace rlx::onnx
