// SPDX-License-Identifier: Apache-2.0
// The judge of random graphs sees a fault that is planted, and no fault where there is none.
#include <gtest/gtest.h>

#include "base/visit.h"
#include "ir/text.h"
#include "meaning.h"

namespace rlx::test {

static Results right_results(const RandomGraph& random) {
  return interpret(random.graph, random.inputs, random.params, {EvalMode::kTyped, Bounds::kError}).value();
}

TEST(judge, sees_a_planted_fault) {
  auto graph = parse(R"(
    graph "g" {
      x = input f32[4,16]
      w = input f32[16,8]
      %1 = matmul(x, w)
      %2 = gelu(%1)
      %3 = layer_norm(%2)
      %4 = bitcast(x) to=i32
      output y = %3
      output bits = %4
    })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  RandomGraph random = with_contents(1, *graph);
  for (size_t output = 0; output < 2; output++) {
    auto meaning = Meaning::of(random);
    ASSERT_TRUE(meaning.ok()) << meaning.status().message();
    Results results = right_results(random);
    EXPECT_EQ(meaning->difference(results), "");
    EXPECT_EQ(meaning->difference_in_bits(results), "");
    results[output].data()[3] ^= std::byte{1};  // of a float, its exponent
    EXPECT_NE(meaning->difference(results), "") << output;
    EXPECT_NE(meaning->difference_in_bits(results), "") << output;
  }
}

}  // namespace rlx::test
