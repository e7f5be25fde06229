// SPDX-License-Identifier: Apache-2.0
// The judge of random graphs sees a fault that is planted, and no fault where there is none.
#include <gtest/gtest.h>

#include <chrono>

#include "base/visit.h"
#include "ir/text.h"
#include "meaning.h"
#include "planted.h"
#include "properties.h"

namespace rlx::test {

static Results right_results(const RandomGraph& random) {
  return interpret(random.graph, random.runs[0], random.params, {EvalMode::kTyped, Bounds::kError}).value();
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

// Each within 10 seconds of graphs, and here within these.
TEST(judge, finds_every_planted_fault) {
  static constexpr uint64_t kSeeds = 2000;
  std::span<const Planted> planted = planted_faults();
  std::vector<uint64_t> found(planted.size());
  size_t missing = planted.size();
  auto begin = std::chrono::steady_clock::now();
  for (uint64_t seed = 1; seed <= kSeeds && missing > 0; seed++) {
    RandomGraph random = random_graph(seed, op_table());
    for (size_t i = 0; i < planted.size(); i++) {
      if (found[i]) continue;
      auto wrong = planted[i].apply(random.graph);
      if (!wrong || check_same_meaning(random, *wrong, planted[i].exact).empty()) continue;
      found[i] = seed;
      missing--;
      std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
      std::printf("seed %llu, %.1f s: %s\n", static_cast<unsigned long long>(seed), seconds.count(), planted[i].name);
    }
  }
  for (size_t i = 0; i < planted.size(); i++) EXPECT_NE(found[i], 0u) << "not found: " << planted[i].name;
}

}  // namespace rlx::test
