// SPDX-License-Identifier: Apache-2.0
// Models of one op of ONNX, with inputs and weights of noise: always the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
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
  };

  std::string input(const Dims& dims) {
    Input it{"x" + std::to_string(inputs_.size()), dims, noise(dims)};
    std::vector<std::string> sizes;
    for (int64_t dim : dims) sizes.push_back(std::to_string(dim));
    onnx_.input(it.name, OnnxWriter::kF32, sizes);
    inputs_.push_back(std::move(it));
    return inputs_.back().name;
  }
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
    std::vector<uint8_t> values(static_cast<size_t>(count_of(dims)));
    for (uint8_t& byte : values) byte = static_cast<uint8_t>(random() >> 16);
    std::string name = next_weight();
    onnx_.u8(name, dims, values);
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
  uint32_t random() { return state_ = state_ * 1664525u + 1013904223u; }
  // Between 0.1 and 1.1, so that roots and logarithms have a value.
  std::vector<float> noise(const Dims& dims) {
    std::vector<float> values(static_cast<size_t>(count_of(dims)));
    for (float& value : values) value = 0.1f + static_cast<float>(random() >> 8) / 0x1p24f;
    return values;
  }
  std::string next_weight() { return "w" + std::to_string(weights_++); }

  OnnxWriter onnx_;
  std::vector<Input> inputs_;
  int weights_ = 0;
  uint32_t state_ = 12345;
};

// ---- nodes that several rows have

inline OnnxWriter::Attributes ints(const char* name, const Dims& values) {
  return {OnnxWriter::attribute(name, values)};
}
inline OnnxWriter::Attributes axis(int64_t axis) {
  return {OnnxWriter::attribute("axis", axis)};
}
inline OnnxWriter::Attributes window(int64_t kernel, int64_t stride, int64_t pad) {
  return {OnnxWriter::attribute("kernel_shape", Dims{kernel, kernel}),
          OnnxWriter::attribute("strides", Dims{stride, stride}),
          OnnxWriter::attribute("pads", Dims{pad, pad, pad, pad})};
}

inline void unary(OneOp& it, const char* op) {
  it.node(op, {it.input({1024, 1024})});
}
inline void product(OneOp& it, int64_t m, int64_t k, int64_t n) {
  it.node("MatMul", {it.input({m, k}), it.weight({k, n})});
}
inline void few_bits(OneOp& it, int64_t m, int64_t k, int64_t n) {
  constexpr int64_t kBlock = 32;
  OnnxWriter::Attributes attributes{OnnxWriter::attribute("K", k), OnnxWriter::attribute("N", n),
                                    OnnxWriter::attribute("bits", int64_t{4}),
                                    OnnxWriter::attribute("block_size", kBlock)};
  it.node("MatMulNBits", {it.input({m, k}), it.bytes({n, k / kBlock, kBlock / 2}), it.weight({n * k / kBlock})},
          attributes, "com.microsoft");
}
inline void convolution(OneOp& it, const Dims& x, const Dims& w, int64_t stride, int64_t pad, int64_t groups = 1) {
  OnnxWriter::Attributes attributes = window(w[2], stride, pad);
  attributes.push_back(OnnxWriter::attribute("group", groups));
  it.node("Conv", {it.input(x), it.weight(w), it.weight({w[0]})}, attributes);
}
inline void twice(OneOp& it, const Dims& x, const char* mode) {
  OnnxWriter::Attributes attributes{OnnxWriter::attribute("mode", std::string_view(mode))};
  Dims sizes = x;
  sizes[2] *= 2, sizes[3] *= 2;
  it.node("Resize", {it.input(x), "", "", it.numbers(sizes)}, attributes);
}

// Of one to three axes; the strides and pads of all are equal.
inline void windows(OneOp& it, const char* op, const Dims& x, const Dims& w, int64_t stride, int64_t pad,
                    int64_t dilation = 1) {
  const size_t axes = x.size() - 2;
  OnnxWriter::Attributes attributes{OnnxWriter::attribute("kernel_shape", Dims(w.end() - axes, w.end())),
                                    OnnxWriter::attribute("strides", Dims(axes, stride)),
                                    OnnxWriter::attribute("pads", Dims(2 * axes, pad))};
  if (dilation > 1) attributes.push_back(OnnxWriter::attribute("dilations", Dims(axes, dilation)));
  OnnxWriter::Names in{it.input(x)};
  if (w.size() > axes) in.push_back(it.weight(w));
  it.node(op, in, attributes);
}
inline void conv(OneOp& it, const Dims& x, const Dims& w, int64_t stride, int64_t pad, int64_t dilation = 1) {
  windows(it, "Conv", x, w, stride, pad, dilation);
}
inline void layer_norm(OneOp& it, int64_t rows, int64_t n) {
  it.node("LayerNormalization", {it.input({rows, n}), it.weight({n}), it.weight({n})});
}
inline void reduce(OneOp& it, const char* op, const Dims& x, const Dims& axes) {
  it.node(op, {it.input(x)}, ints("axes", axes));
}
inline void extreme(OneOp& it, const Dims& x) {
  it.cast(it.step("ArgMax", {it.input(x)}, axis(-1)));
}
inline void first(OneOp& it, const Dims& x, int64_t k) {
  it.node("TopK", {it.input(x), it.numbers({k})}, {}, "", 2);
}
inline void recurrent(OneOp& it, const char* op, int64_t gates, int64_t steps, int64_t width) {
  const Dims weights{1, gates * width, width};
  it.node(op, {it.input({steps, 1, width}), it.weight(weights), it.weight(weights), it.weight({1, 2 * gates * width})},
          {OnnxWriter::attribute("hidden_size", width)});
}
inline std::string quantized(OneOp& it, const Dims& dims) {
  return it.step("QuantizeLinear", {it.input(dims), it.number(0.005F), it.zero_byte(3)});
}
// An op of com.microsoft on one quantised tensor, or on two of these dims.
inline void on_bytes(OneOp& it, const char* op, const Dims& a, const Dims& b = {}) {
  OnnxWriter::Names in{quantized(it, a), it.number(0.0131F), it.zero_byte(7)};
  if (!b.empty()) in.insert(in.end(), {quantized(it, b), it.number(0.0217F), it.zero_byte(9)});
  in.insert(in.end(), {it.number(0.0307F), it.zero_byte(11)});
  it.cast(it.step(op, in, {}, "com.microsoft"));
}
inline void boxes(OneOp& it, int64_t classes, int64_t n) {
  it.cast(it.step("NonMaxSuppression",
                  {it.input({1, n, 4}), it.input({1, classes, n}), it.numbers({20}), it.number(0.5F)}));
}
inline void columns(OneOp& it, int64_t n) {
  it.node("Concat", {it.input({n, 1}), it.input({n, 1}), it.input({n, 1}), it.input({n, 1})}, axis(1));
}
inline void quantized_product(OneOp& it, int64_t m, int64_t k, int64_t n) {
  it.cast(it.step("MatMulInteger", {quantized(it, {m, k}), it.bytes({k, n}), it.zero_byte(3), it.zero_byte(128)}));
}

// An integer in [0, n) for each element.
inline std::string places(OneOp& it, const Dims& dims, int64_t n) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count_of(dims); ++i) values.push_back(i * 7919 % n);
  return it.step("Reshape", {it.numbers(values), it.numbers(dims)});
}
inline void scatter(OneOp& it, const char* op, const Dims& indices, const Dims& updates) {
  it.node(op, {it.input({1000, 64}), places(it, indices, 1000), it.input(updates)},
          {OnnxWriter::attribute("reduction", std::string_view("add"))});
}
// A convolution of channels that lie behind each other, as exported from frameworks where they do.
inline void channels_last(OneOp& it, const Dims& x, const Dims& w, int64_t pad, int64_t groups) {
  OnnxWriter::Attributes attributes = window(w[2], 1, pad);
  attributes.push_back(OnnxWriter::attribute("group", groups));
  std::string planes = it.step("Transpose", {it.input(x)}, ints("perm", {0, 3, 1, 2}));
  it.node("Transpose", {it.step("Conv", {planes, it.weight(w), it.weight({w[0]})}, attributes)},
          ints("perm", {0, 2, 3, 1}));
}
inline void quantized_channels_last(OneOp& it, const Dims& x, const Dims& w) {
  OnnxWriter::Attributes attributes = window(w[2], 1, w[2] / 2);
  attributes.push_back(OnnxWriter::attribute("channels_last", int64_t{1}));
  it.cast(it.step("QLinearConv",
                  {quantized(it, x), it.number(0.005F), it.zero_byte(3), it.bytes(w), it.number(0.01F),
                   it.zero_byte(128), it.number(0.5F), it.zero_byte(128)},
                  attributes, "com.microsoft"));
}
inline void batch_norm(OneOp& it, const Dims& x) {
  const Dims c{x[1]};
  it.node("BatchNormalization", {it.input(x), it.weight(c), it.weight(c), it.weight(c), it.weight(c)});
}

}  // namespace bench
