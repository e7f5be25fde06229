// SPDX-License-Identifier: Apache-2.0
// What the interpreter says of inputs that are not those of the graph.
#include "ops/interpret.h"

#include <gtest/gtest.h>

#include "ir/text.h"

namespace rlx {

static std::string said(std::initializer_list<Tensor> inputs) {
  auto graph = parse("graph (n) {\nx = input f32[n,n + 1]\ny = input i32[]\noutput x\noutput y\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  auto results = interpret(*graph, std::vector<Tensor>(inputs));
  return results.ok() ? "fine" : std::string(results.status().message());
}

static Tensor zeros(DType dtype, std::vector<int64_t> dims) {
  return *Tensor::create(dtype, dims);
}

TEST(interpret, names_the_input_that_does_not_fit) {
  const Tensor x = zeros(DType::kF32, {3, 4}), y = zeros(DType::kI32, {});
  EXPECT_EQ(said({x, y}), "fine");
  EXPECT_EQ(said({x}), "the graph takes 2 inputs, not 1");
  EXPECT_EQ(said({x, y, y}), "the graph takes 2 inputs, not 3");
  EXPECT_EQ(said({x, zeros(DType::kI64, {})}), "input 'y' is i32, not i64");
  EXPECT_EQ(said({zeros(DType::kF32, {3}), y}), "x needs rank 2, not 1");
  EXPECT_EQ(said({zeros(DType::kF32, {3, 3}), y}), "input 'x', axis 1: n + 1 is 4, not 3");
}

}  // namespace rlx
