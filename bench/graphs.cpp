// SPDX-License-Identifier: Apache-2.0
#include "graphs.h"

#include <cmath>

#include "onnx_writer.h"

namespace bench {
namespace {

constexpr int64_t kWidth = 128;  // librlx makes params of initialisers above 64 elements

std::vector<float> noise(size_t count, float scale, uint32_t seed) {
  std::vector<float> values(count);
  uint32_t state = seed * 2654435761u + 1;
  for (float& value : values) {
    state = state * 1664525u + 1013904223u;
    value = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
  }
  return values;
}

Model finished(OnnxWriter& onnx, const std::string& result, std::string options = {}) {
  onnx.output(result);
  return {{}, onnx.model(), std::move(options), onnx.node_count(), {}};
}

}  // namespace

Model chain(int64_t nodes) {
  OnnxWriter onnx;
  std::string y = "x";
  onnx.input(y, OnnxWriter::kF32, {std::to_string(kWidth)});
  for (int64_t i = 0; i < nodes; ++i) y = onnx.node("Sin", {y});
  return finished(onnx, y);
}

Model softmaxes(int count, int symbols) {
  OnnxWriter onnx;
  OnnxWriter::Names values;
  std::string options;
  auto symbol = [&](int i) { return "size" + std::to_string(i % symbols); };
  for (int i = 0; i < symbols; ++i) {
    values.push_back("x" + std::to_string(i));
    onnx.input(values.back(), OnnxWriter::kF32, {symbol(i), symbol(i + 1)});
    options += "dims." + symbol(i) + "=64 ";
  }
  for (int i = 0; i < count; ++i) {
    std::string& value = values[i % symbols];
    value = onnx.node("Softmax", {value}, {OnnxWriter::attribute("axis", -1)});
  }
  for (size_t i = 1; i < values.size(); ++i) onnx.output(values[i]);
  return finished(onnx, values[0], options);
}

Model params(int count) {
  OnnxWriter onnx;
  std::string y = "x";
  onnx.input(y, OnnxWriter::kF32, {std::to_string(kWidth)});
  for (int i = 0; i < count; ++i) {
    std::string name = "weights." + std::to_string(i);
    onnx.f32(name, {kWidth}, noise(kWidth, 1, i));
    y = onnx.node("Add", {y, name});
  }
  return finished(onnx, y);
}

Model levels(int count, bool on_a_param) {
  OnnxWriter onnx;
  std::string y = "x";
  if (on_a_param)
    onnx.f32(y, {kWidth}, noise(kWidth, 1, 0));
  else
    onnx.input(y, OnnxWriter::kF32, {std::to_string(kWidth)});
  for (int i = 0; i < count; ++i) {
    std::string sine = onnx.node("Sin", {y}), cosine = onnx.node("Cos", {y});
    y = onnx.node("Add", {sine, cosine});
  }
  return finished(onnx, y);
}

// ---- a decoder ----

namespace {

constexpr int64_t kHeads = 4, kKeyHeads = 2, kHead = kWidth / kHeads, kInner = 256, kVocabulary = 512;
constexpr float kMasked = -3.4028235e38f;

// Norms, rotary positions, shared key heads, attention and gates are written as primitive nodes, and shapes are
// computed from shapes, as exporters do. Widths are small, because compile time depends on the number of nodes.
class Decoder {
 public:
  using Names = OnnxWriter::Names;

  Model write(int layers) {
    for (const char* name : {"input_ids", "attention_mask", "position_ids"}) {
      onnx_.input(name, OnnxWriter::kI64, {"batch", "sequence"});
    }
    std::string hidden = node("Gather", {weight({kVocabulary, kWidth}), "input_ids"});
    write_positions();
    write_mask();
    for (int i = 0; i < layers; ++i) hidden = layer(hidden);
    std::string logits = node("MatMul", {norm(hidden), weight({kWidth, kVocabulary})});
    Model model = finished(onnx_, logits, "dims.batch=4 dims.sequence=128");
    model.feeds = {{"input_ids", {2, 3}, {1, 2, 3, 44, 55, 66}},
                   {"attention_mask", {2, 3}, {1, 1, 1, 1, 1, 0}},
                   {"position_ids", {2, 3}, {0, 1, 2, 0, 1, 2}}};
    return model;
  }

 private:
  std::string node(const char* op, const Names& in, const OnnxWriter::Attributes& attributes = {}) {
    return onnx_.node(op, in, attributes);
  }
  std::string weight(const std::vector<int64_t>& dims) {
    size_t count = 1;
    for (int64_t dim : dims) count *= static_cast<size_t>(dim);
    std::string name = "weights." + std::to_string(++weights_);
    onnx_.f32(name, dims, noise(count, std::sqrt(3.0f / static_cast<float>(dims[0])), weights_));
    return name;
  }
  std::string ints(const std::vector<int64_t>& values) {
    std::string name = "ints." + std::to_string(++constants_);
    onnx_.i64(name, {static_cast<int64_t>(values.size())}, values);
    return name;
  }
  std::string index(int64_t value) {  // of rank 0
    std::string name = "index." + std::to_string(++constants_);
    onnx_.i64(name, {}, {&value, 1});
    return name;
  }
  std::string scalar(float value) {
    std::string name = "scalar." + std::to_string(++constants_);
    onnx_.f32(name, {}, {&value, 1});
    return name;
  }
  std::string dim(const std::string& x, int64_t axis) { return node("Gather", {node("Shape", {x}), index(axis)}); }
  std::string unsqueeze(const std::string& x, const std::vector<int64_t>& axes) {
    return node("Unsqueeze", {x, ints(axes)});
  }
  std::string transpose(const std::string& x, const std::vector<int64_t>& perm) {
    return node("Transpose", {x}, {OnnxWriter::attribute("perm", perm)});
  }
  std::string concat(const Names& parts, int64_t axis) {
    return node("Concat", parts, {OnnxWriter::attribute("axis", axis)});
  }
  std::string to_f32(const std::string& x) {
    return node("Cast", {x}, {OnnxWriter::attribute("to", OnnxWriter::kF32)});
  }
  struct Sizes {
    std::string batch, sequence;  // of rank 0
  };
  Sizes sizes(const std::string& x, int64_t sequence_axis) { return {dim(x, 0), dim(x, sequence_axis)}; }
  // [batch, sequence, tail ...] as a tensor of sizes
  std::string shape(const Sizes& sizes, const std::vector<int64_t>& tail) {
    return concat({unsqueeze(sizes.batch, {0}), unsqueeze(sizes.sequence, {0}), ints(tail)}, 0);
  }

  // [batch, sequence, kHead]: cosines and sines of position * frequency
  void write_positions() {
    std::vector<float> frequencies(kHead / 2);
    for (int64_t i = 0; i < kHead / 2; ++i) {
      frequencies[i] = std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(kHead));
    }
    onnx_.f32("frequencies", {1, 1, kHead / 2}, frequencies);
    std::string position = to_f32(unsqueeze("position_ids", {2}));
    std::string angle = node("MatMul", {position, "frequencies"});
    std::string both = concat({angle, angle}, -1);
    cosine_ = node("Cos", {both});
    sine_ = node("Sin", {both});
  }

  // [batch, 1, sequence, sequence]: 0 where a token may look, else the least f32
  void write_mask() {
    std::string positions = node("Range", {index(0), dim("input_ids", 1), index(1)});
    std::string later = node("Greater", {unsqueeze(positions, {0}), unsqueeze(positions, {1})});
    std::string real = to_f32(unsqueeze("attention_mask", {1, 2}));
    std::string padding = node("Equal", {real, scalar(0)});
    std::string hidden = node("Or", {unsqueeze(later, {0, 1}), padding});
    mask_ = node("Where", {hidden, scalar(kMasked), scalar(0)});
  }

  std::string norm(const std::string& x) {
    std::string wide = to_f32(x);
    std::string square = node("Pow", {wide, scalar(2)});
    OnnxWriter::Attributes last = {OnnxWriter::attribute("axes", std::vector<int64_t>{-1})};
    std::string mean = node("Add", {node("ReduceMean", {square}, last), scalar(1e-6f)});
    std::string inverse = node("Div", {scalar(1), node("Sqrt", {mean})});
    return node("Mul", {weight({kWidth}), to_f32(node("Mul", {wide, inverse}))});
  }

  // [batch, heads, sequence, kHead]
  std::string projected(const std::string& x, const Sizes& sizes, int64_t heads) {
    std::string y = node("MatMul", {x, weight({kWidth, heads * kHead})});
    return transpose(node("Reshape", {y, shape(sizes, {heads, kHead})}), {0, 2, 1, 3});
  }

  std::string rotated(const std::string& x, const std::string& cosine, const std::string& sine) {
    auto half = [&](int64_t begin, int64_t end) {
      return node("Slice", {x, ints({begin}), ints({end}), ints({3}), ints({1})});
    };
    std::string first = half(0, kHead / 2), second = half(kHead / 2, INT64_MAX);
    std::string turned = concat({node("Neg", {second}), first}, -1);
    return node("Add", {node("Mul", {x, cosine}), node("Mul", {turned, sine})});
  }

  // Repeats each key head for the query heads that share it.
  std::string repeated(const std::string& x) {
    Sizes own = sizes(x, 2);
    std::string batch = unsqueeze(own.batch, {0}), sequence = unsqueeze(own.sequence, {0});
    std::string wide = concat({batch, ints({kKeyHeads, kHeads / kKeyHeads}), sequence, ints({kHead})}, 0);
    std::string flat = concat({batch, ints({kHeads}), sequence, ints({kHead})}, 0);
    return node("Reshape", {node("Expand", {unsqueeze(x, {2}), wide}), flat});
  }

  std::string attention(const std::string& x) {
    Sizes own = sizes(x, 1);
    std::string q = projected(x, own, kHeads), k = projected(x, own, kKeyHeads), v = projected(x, own, kKeyHeads);
    std::string cosine = unsqueeze(cosine_, {1}), sine = unsqueeze(sine_, {1});
    q = rotated(q, cosine, sine);
    k = repeated(rotated(k, cosine, sine));
    v = repeated(v);
    std::string scores = node("MatMul", {q, transpose(k, {0, 1, 3, 2})});
    scores = node("Div", {scores, scalar(std::sqrt(static_cast<float>(kHead)))});
    std::string weights = node("Softmax", {node("Add", {scores, mask_})}, {OnnxWriter::attribute("axis", -1)});
    std::string y = transpose(node("MatMul", {weights, v}), {0, 2, 1, 3});
    return node("MatMul", {node("Reshape", {y, shape(own, {kWidth})}), weight({kWidth, kWidth})});
  }

  std::string gated(const std::string& x) {
    std::string gate = node("MatMul", {x, weight({kWidth, kInner})});
    std::string silu = node("Mul", {gate, node("Sigmoid", {gate})});
    std::string up = node("MatMul", {x, weight({kWidth, kInner})});
    return node("MatMul", {node("Mul", {silu, up}), weight({kInner, kWidth})});
  }

  std::string layer(const std::string& x) {
    std::string middle = node("Add", {x, attention(norm(x))});
    return node("Add", {middle, gated(norm(middle))});
  }

  OnnxWriter onnx_;
  std::string cosine_, sine_, mask_;
  int weights_ = 0, constants_ = 0;
};

}  // namespace

Model decoder(int layers) {
  return Decoder().write(layers);
}

namespace {

std::vector<float> identity(int64_t size) {
  std::vector<float> values(static_cast<size_t>(size * size));
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i * size + i)] = 1;
  return values;
}

}  // namespace

Model one_add(int64_t elements) {
  OnnxWriter onnx;
  onnx.input("x", OnnxWriter::kF32, {std::to_string(elements)});
  return finished(onnx, onnx.node("Add", {"x", "x"}));
}

Model matmuls(int count, int64_t size) {
  OnnxWriter onnx;
  std::string y = "x", width = std::to_string(size);
  onnx.input(y, OnnxWriter::kF32, {width, width});
  onnx.f32("w", {size, size}, identity(size));
  for (int i = 0; i < count; ++i) y = onnx.node("MatMul", {y, "w"});
  return finished(onnx, y);
}

Model matmul_loop(int64_t trips, int64_t size) {
  OnnxWriter onnx, body;
  std::string width = std::to_string(size);
  body.input("trip", OnnxWriter::kI64, {});
  body.input("goes_on", OnnxWriter::kBool, {});
  body.input("y", OnnxWriter::kF32, {width, width});
  body.f32("w", {size, size}, identity(size));
  body.output(body.node("Identity", {"goes_on"}), OnnxWriter::kBool);
  body.output(body.node("MatMul", {"y", "w"}));
  onnx.input("x", OnnxWriter::kF32, {width, width});
  onnx.i64("trips", {}, std::vector<int64_t>{trips});
  return finished(onnx, onnx.node("Loop", {"trips", "", "x"}, {OnnxWriter::attribute("body", body)}));
}

}  // namespace bench
