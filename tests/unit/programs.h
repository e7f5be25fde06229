// SPDX-License-Identifier: Apache-2.0
// Graphs and tensors that the tests of programs share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>

#include "backends/far/far.h"
#include "ir/text.h"
#include "ops/expr.h"
#include "runtime/exec.h"

namespace rlx::testing_programs {

// Numbers without a pattern that a wrong stride could hide behind, in [-1, 1).
inline Tensor noise(std::vector<int64_t> dims, uint32_t seed = 1, float scale = 1) {
  Tensor tensor = *Tensor::create(DType::kF32, dims);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < tensor.count(); i++) {
    state = state * 1664525u + 1013904223u;
    tensor.as<float>()[i] = scale * (static_cast<float>(state >> 8) / 8388608.0f - 1);
  }
  return tensor;
}

inline Expr input(Builder& b, const char* name, std::vector<Dim> dims) {
  auto value = b.graph().add_input(name, DType::kF32, std::move(dims));
  EXPECT_TRUE(value.ok()) << value.status().message();
  return b.wrap(*value);
}

inline Expr weight(Builder& b, Weights& weights, const char* name, std::vector<int64_t> dims, float scale = 0.5f) {
  std::vector<Dim> symbolic(dims.begin(), dims.end());
  auto value = b.graph().add_param(name, DType::kF32, symbolic);
  EXPECT_TRUE(value.ok()) << value.status().message();
  EXPECT_TRUE(weights.put(name, noise(dims, static_cast<uint32_t>(weights.count()) + 7, scale)).ok());
  return b.wrap(*value);
}

inline void output(Builder& b, const char* name, Expr value) {
  ASSERT_TRUE(b.status().ok()) << b.status().message();
  ASSERT_TRUE(b.graph().add_output(name, value.value()).ok());
}

// An encoder layer as exporters spell it when its parts are fused: one product for q, k and v, sliced, attention over
// views, residual and norm, a gelu between two products.
struct Encoder {
  Graph graph{"encoder"};
  std::shared_ptr<Weights> weights = std::make_shared<Weights>();
  static constexpr int64_t kWidth = 32, kHeads = 4, kInner = 80;

  Encoder() {
    Dim batch = Dim::symbol("batch"), seq = Dim::symbol("seq");
    EXPECT_TRUE(graph.declare_symbol("batch", {0, 8}).ok());
    EXPECT_TRUE(graph.declare_symbol("seq", {0, 64}).ok());
    Builder b(graph);
    Expr x = input(b, "x", {batch, seq, kWidth});
    Expr mask = input(b, "mask", {batch, seq});
    Expr bias = (1.0 - reshape(mask, {batch, 1, 1, seq})) * -10000.0;
    Expr qkv = b.op(Op::kLinear,
                    {x, weight(b, *weights, "wqkv", {kWidth, 3 * kWidth}), weight(b, *weights, "bqkv", {3 * kWidth})});
    auto head = [&](int64_t part) {
      Expr one = slice(qkv, 2, part * kWidth, (part + 1) * kWidth);
      return reshape(one, {batch, seq, kHeads, kWidth / kHeads});
    };
    Expr mixed = b.ops(Op::kAttention, std::array{head(0), head(1), head(2), Expr(), bias}, {{"layout", "bshd"}})[0];
    Expr joined = reshape(mixed, {batch, seq, kWidth});
    Expr attended =
        b.op(Op::kLinear, {joined, weight(b, *weights, "wo", {kWidth, kWidth}), weight(b, *weights, "bo", {kWidth})});
    Expr h = b.ops(Op::kResidualLayerNorm,
                   {attended, x, Expr(), weight(b, *weights, "g1", {kWidth}), weight(b, *weights, "b1", {kWidth})})[0];
    Expr inner = b.ops(Op::kLinear,
                       std::array{h, weight(b, *weights, "w1", {kWidth, kInner}), weight(b, *weights, "c1", {kInner})},
                       {{"act", "gelu"}})[0];
    Expr outer =
        b.op(Op::kLinear, {inner, weight(b, *weights, "w2", {kInner, kWidth}), weight(b, *weights, "c2", {kWidth})});
    Expr y = b.ops(Op::kResidualLayerNorm,
                   {outer, h, Expr(), weight(b, *weights, "g2", {kWidth}), weight(b, *weights, "b2", {kWidth})})[0];
    output(b, "y", y);
    Expr wide = reshape(mask, {batch, seq, 1});
    output(b, "pooled",
           reduce(y * wide, "sum", {1}, KeepDims::kNo) /
               maximum(reduce(wide, "sum", {1}, KeepDims::kNo), scalar_like(wide, 1e-9)));
  }

  static std::vector<Tensor> inputs(int64_t batch, int64_t seq) {
    Tensor mask = *Tensor::create(DType::kF32, std::array{batch, seq});
    for (int64_t i = 0; i < mask.count(); i++) mask.as<float>()[i] = i % 5 == 4 ? 0.0f : 1.0f;
    return {noise({batch, seq, kWidth}, 3), mask};
  }
};

// RLX_TEST_DEVICE: the device that tests run on.
inline std::string test_device() {
  const char* device = std::getenv("RLX_TEST_DEVICE");
  return device ? device : "cpu";
}
inline bool is_far() {
  return test_device() == "far";
}

inline std::shared_ptr<Env> env_with(int threads, std::shared_ptr<far::Faults> faults = nullptr) {
  EnvOptions options{.threads = threads, .default_device = test_device()};
  if (is_far() || faults) options.backends.push_back(far::backend(std::move(faults)));
  auto env = Env::create(options);
  EXPECT_TRUE(env.ok()) << env.status().message();
  return *env;
}

// The tensor itself where the host can address it, else a copy.
inline Tensor on_host(const Tensor& tensor) {
  if (tensor.data() || tensor.bytes() == 0) return tensor;
  Tensor copy = *Tensor::create(tensor.dtype(), tensor.dims());
  EXPECT_TRUE(copy_bytes(copy.storage()->place(), tensor.storage()->place(), copy.bytes()).ok());
  return copy;
}

inline Tensor scalar_i64(int64_t number) {
  Tensor tensor = *Tensor::create(DType::kI64, std::span<const int64_t>());
  *tensor.as<int64_t>() = number;
  return tensor;
}

// Of a graph in text.
inline std::unique_ptr<Exec> exec_of(const std::string& text, const NamedAttrs& options = {}) {
  auto graph = parse(text);
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto program = Program::compile(env_with(1), *graph, nullptr, nullptr, options);
  EXPECT_TRUE(program.ok()) << program.status().message();
  return Exec::create(*program).value();
}

inline Tensor shown(Exec& exec, SlotKind kind, size_t slot) {
  return on_host(exec.tensor(kind, slot).value());
}

// Writes into the memory of a slot, which may be out of the host's reach.
inline void write(Exec& exec, SlotKind kind, size_t slot, std::vector<float> values) {
  Tensor tensor = exec.tensor(kind, slot).value();
  auto* bytes = reinterpret_cast<std::byte*>(values.data());
  auto buffer = host_buffer({std::shared_ptr<void>(), bytes}, values.size() * sizeof(float));
  ASSERT_EQ(tensor.bytes(), buffer->size());
  ASSERT_TRUE(copy_bytes(tensor.storage()->place(), {*buffer, 0}, buffer->size()).ok());
}

inline void write(Exec& exec, size_t input, std::vector<float> values) {
  write(exec, SlotKind::kInput, input, std::move(values));
}

inline void expect_near(const Tensor& got, const Tensor& want, float tolerance = 2e-5f) {
  ASSERT_EQ(want.dtype(), DType::kF32);
  ASSERT_EQ(type_text(got.dtype(), got.dims()), type_text(want.dtype(), want.dims()));
  for (int64_t i = 0; i < got.count(); i++)
    ASSERT_NEAR(got.as<float>()[i], want.as<float>()[i], tolerance * (1 + std::abs(want.as<float>()[i]))) << i;
}

}  // namespace rlx::testing_programs
