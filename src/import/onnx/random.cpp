// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that draw random numbers.
#include "import/onnx/random.h"

#include <bit>

#include "import/onnx/list.h"

namespace rlx::onnx {

static Expr words(Builder& builder, std::initializer_list<uint32_t> values) {
  auto tensor = list_tensor(DType::kU32, std::span(values.begin(), values.size()));
  return tensor.ok() ? builder.constant(*tensor) : builder.fail(std::move(tensor).status());
}

RandomState random_state(Call& call) {
  bool is_integer = call.kind().op_type == "Dropout";  // all others have an f32
  uint32_t seed = is_integer ? static_cast<uint32_t>(call.i64("seed", 0))
                             : std::bit_cast<uint32_t>(static_cast<float>(call.f64("seed", 0)));
  auto place = static_cast<uint32_t>(call.builder().graph().nodes().size());
  return {words(call.builder(), {seed, place}), words(call.builder(), {0, 0, 0, 0})};
}

namespace {

// The sizes are given by an attribute, or are those of an input.
void build_drawn(Call& call) {
  bool is_like = call.has(0);
  std::vector<Dim> shape;
  if (is_like)
    shape = call.type(0).dims;
  else
    for (int64_t size : call.i64s("shape")) shape.emplace_back(size);
  DType dtype = call.dtype("dtype", is_like ? call.type(0).dtype : DType::kF32);
  auto [key, counter] = random_state(call);
  NamedAttrs attrs{{"shape", shape}, {"dtype", dtype}};
  for (const AttrRow& row : call.kind().attrs) attrs.emplace_back(row.ours, call.f64(row.theirs, row.fallback));
  call.out(0, call.op(call.kind().op, {key, counter}, attrs));
}

void build_bernoulli(Call& call) {
  DType dtype = call.dtype("dtype", call.type(0).dtype);
  auto [key, counter] = random_state(call);
  call.out(0, cast(call.op("bernoulli", {call.in(0), key, counter}), dtype));
}

void build_multinomial(Call& call) {
  DType dtype = call.dtype("dtype", DType::kI32);
  auto [key, counter] = random_state(call);
  call.out(0, call.op("categorical", {call.in(0), key, counter},
                      {{"n", call.i64("sample_size", 1)}, {"index_dtype", dtype}}));
}

constexpr NodeKind kKinds[] = {
    {"RandomUniform", build_drawn, "rng_uniform", nullptr, {{"low", "low", 0}, {"high", "high", 1}}},
    {"RandomUniformLike", build_drawn, "rng_uniform", nullptr, {{"low", "low", 0}, {"high", "high", 1}}},
    {"RandomNormal", build_drawn, "rng_normal", nullptr, {{"mean", "mean", 0}, {"scale", "std", 1}}},
    {"RandomNormalLike", build_drawn, "rng_normal", nullptr, {{"mean", "mean", 0}, {"scale", "std", 1}}},
    {"Bernoulli", build_bernoulli},
    {"Multinomial", build_multinomial},
};

}  // namespace

std::span<const NodeKind> random_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
