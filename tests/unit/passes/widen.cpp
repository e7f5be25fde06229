// SPDX-License-Identifier: Apache-2.0
// What is computed in f32 because the device has no kernel for halves, and what is not.
#include <gtest/gtest.h>

#include <algorithm>

#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pass.h"

namespace rlx {

using IsNative = bool (*)(const Facts&, Value);

static bool in_f32(const Facts& facts, Value value) {
  return facts.graph().type(value).dtype == DType::kF32;
}

static bool without_halves(const Facts& facts, Value value) {
  const Graph& graph = facts.graph();
  const Node& node = graph.node(value);
  auto is_of_halves = [&](Value in) { return present(in) && is_half(graph.type(in).dtype); };
  return !is_half(graph.type(value).dtype) && std::ranges::none_of(node.in, is_of_halves);
}

static std::string widened(const char* text, IsNative is_native) {
  auto graph = parse(text);
  if (!graph.ok()) return std::string(graph.status().message());
  PassContext context;
  context.is_native = is_native;
  auto made = widen_halves(*graph, context);
  if (!made.ok()) return std::string(made.status().message());
  EXPECT_TRUE(verify(*made).ok());
  return print(*made);
}

static std::string printed(const char* text) {
  auto graph = parse(text);
  return graph.ok() ? print(*graph) : std::string(graph.status().message());
}

// Casts, bits, views, bodies, what gives no half, and composites whose steps each round.
TEST(widen, leaves_what_means_something_else_in_f32) {
  constexpr char kText[] = R"(graph "g" () {
  x = input f16[2,4]
  f = input f32[2]
  bits = input i16[2]
  p = input bool[]
  a = cast(f) to=f16
  b = bitcast(bits) to=f16
  c = reshape(x) shape=[8]
  d = if(p, x) then=graph {
    y = input f16[2,4]
    z = neg(y)
    output z
  } else=graph {
    y = input f16[2,4]
    output y
  }
  e = lt(x, x)
  g = sum_square(x) axes=[1]
  output a
  output b
  output c
  output d
  output e
  output g
})";
  for (IsNative is_native : {in_f32, without_halves}) EXPECT_EQ(widened(kText, is_native), printed(kText));
}

// Of an op with an attribute for the dtype, that changes too; an operand that is absent stays so.
TEST(widen, computes_the_same_op_between_casts) {
  EXPECT_EQ(widened(R"(graph "g" (n) {
  x = input bf16[n]
  low = input bf16[n]
  i = input i64[n]
  a = iota() shape=[n] axis=0 dtype=f16
  b, _, _ = layer_norm(x, _, low)
  c = gather(x, i)
  output a
  output b
  output c
})",
                    in_f32),
            printed(R"(graph "g" (n) {
  x = input bf16[n]
  low = input bf16[n]
  i = input i64[n]
  a = iota() shape=[n] axis=0 dtype=f32
  %4 = cast(a) to=f16
  %5 = cast(x) to=f32
  %6 = cast(low) to=f32
  b, _, _ = layer_norm(%5, _, %6)
  %8 = cast(b) to=bf16
  c = gather(%5, i)
  %10 = cast(c) to=bf16
  output a = %4
  output b = %8
  output c = %10
})"));
}

// A kernel may need one operand resident.
TEST(widen, asks_the_device_about_the_operands_that_the_op_has) {
  auto of_a_resident = [](const Facts& facts, Value value) {
    const Node& node = facts.graph().node(value);
    return node.op == Op::kMatmul && in_f32(facts, value) && facts.is_resident(node.in[1]) &&
           !facts.is_resident(node.in[0]);
  };
  EXPECT_EQ(widened(R"(graph "g" (n) {
  x = input f16[n,4]
  w = param f16[4,4]
  y = matmul(x, w)
  z = matmul(w, x) transpose_b=true
  output y
  output z
})",
                    of_a_resident),
            printed(R"(graph "g" (n) {
  x = input f16[n,4]
  w = param f16[4,4]
  %2 = cast(x) to=f32
  %3 = cast(w) to=f32
  y = matmul(%2, %3)
  %5 = cast(y) to=f16
  z = matmul(w, x) transpose_b=true
  output y = %5
  output z
})"));
}

// Nothing is asked where no half is made, and nothing is done for a device that says nothing.
TEST(widen, has_work_only_where_a_node_gives_a_half) {
  PassContext context;
  auto halves = *parse("graph {\nx = input f16[2]\ny = exp(x)\noutput y\n}");
  EXPECT_FALSE(may_widen(halves, context));
  context.is_native = in_f32;
  EXPECT_TRUE(may_widen(halves, context));
  EXPECT_FALSE(may_widen(*parse("graph {\nx = input f32[2]\ny = exp(x)\noutput y\n}"), context));
}

}  // namespace rlx
