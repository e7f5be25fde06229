// SPDX-License-Identifier: Apache-2.0
// The ops that bench_ops measures: a table of rows, of which each makes a model of one node.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onnx_writer.h"

namespace bench {

using Dims = std::vector<int64_t>;

inline int64_t count_of(const Dims& dims) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  return count;
}

// A model of one node, and what its inputs hold.
class OneOp {
 public:
  using Attributes = OnnxWriter::Attributes;
  struct Input {
    std::string name;
    Dims dims;
    std::vector<float> values;
    std::vector<uint8_t> bytes;  // instead of values, of an input of bytes
  };

  std::string input(const Dims& dims) { return input(OnnxWriter::kF32, {"", dims, noise(dims), {}}); }
  std::string byte_input(const Dims& dims) { return input(OnnxWriter::kU8, {"", dims, {}, random_bytes(dims)}); }
  std::string weight(const Dims& dims) {
    std::string name = next_weight();
    onnx_.f32(name, dims, noise(dims));
    return name;
  }
  std::string numbers(const std::vector<int64_t>& values) {
    std::string name = next_weight();
    onnx_.i64(name, {static_cast<int64_t>(values.size())}, values);
    return name;
  }
  std::string bytes(const Dims& dims) {
    std::string name = next_weight();
    onnx_.u8(name, dims, random_bytes(dims));
    return name;
  }
  std::string number(float value) {
    std::string name = next_weight();
    onnx_.f32(name, {}, {&value, 1});
    return name;
  }
  std::string zero_byte(uint8_t value) {
    std::string name = next_weight();
    onnx_.u8(name, {}, {&value, 1});
    return name;
  }
  // A node before the last one, which `node` adds.
  std::string step(const char* op, const OnnxWriter::Names& in, const Attributes& attributes = {},
                   const char* domain = "", int outputs = 1) {
    return onnx_.node(op, in, attributes, domain, outputs);
  }
  void node(const char* op, const OnnxWriter::Names& in, const Attributes& attributes = {}, const char* domain = "",
            int outputs = 1) {
    onnx_.output(step(op, in, attributes, domain, outputs));
  }
  // Outputs are compared as f32.
  void cast(const std::string& from) { node("Cast", {from}, {OnnxWriter::attribute("to", int64_t{OnnxWriter::kF32})}); }

  std::vector<uint8_t> model() const { return onnx_.model(); }
  std::vector<Input>& inputs() { return inputs_; }

 private:
  std::string input(OnnxWriter::Type type, Input it) {
    it.name = "x" + std::to_string(inputs_.size());
    std::vector<std::string> sizes;
    for (int64_t dim : it.dims) sizes.push_back(std::to_string(dim));
    onnx_.input(it.name, type, sizes);
    inputs_.push_back(std::move(it));
    return inputs_.back().name;
  }
  uint32_t random() { return state_ = state_ * 1664525u + 1013904223u; }
  // Between 0.1 and 1.1, so that roots and logarithms have a value.
  std::vector<float> noise(const Dims& dims) {
    std::vector<float> values(static_cast<size_t>(count_of(dims)));
    for (float& value : values) value = 0.1f + static_cast<float>(random() >> 8) / 0x1p24f;
    return values;
  }
  std::vector<uint8_t> random_bytes(const Dims& dims) {
    std::vector<uint8_t> bytes(static_cast<size_t>(count_of(dims)));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random() >> 16);
    return bytes;
  }
  std::string next_weight() { return "w" + std::to_string(weights_++); }

  OnnxWriter onnx_;
  std::vector<Input> inputs_;
  int weights_ = 0;
  uint32_t state_ = 12345;
};

struct OpRow {
  const char* name;
  void (*make)(OneOp&);
};
std::span<const OpRow> op_rows();

}  // namespace bench
