// SPDX-License-Identifier: Apache-2.0
// Drawn numbers lie where their attributes say, to the bit: a comparison with a tolerance would not see one that is
// not.
#include "ops/interpret.h"
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

// With this counter, a number is drawn that rounding brings to the upper end. The last two ends are the numbers
// after 1, of f16 and of bf16.
TEST(rng_uniform, stays_below_its_upper_end) {
  for (std::string dtype : {"f16", "bf16"})
    for (auto [low, high] : {std::pair{1.0, 2.0}, {-2.0, -1.0}, {-1.0, 0.0}, {1.0, 1.0009765625}, {1.0, 1.0078125}}) {
      auto graph =
          parse("graph {\nkey = input u32[2]\ncounter = input u32[4]\n" +
                format("y, next = rng_uniform(key, counter) shape=[4] low={} high={} dtype={}\n", low, high, dtype) +
                "output y\n}");
      ASSERT_TRUE(graph.ok()) << graph.status().message();
      Tensor key = *Tensor::create(DType::kU32, std::array<int64_t, 1>{2});
      Tensor counter = *Tensor::create(DType::kU32, std::array<int64_t, 1>{4});
      key.as<uint32_t>()[0] = 1, counter.as<uint32_t>()[0] = 8;
      auto made = interpret(*graph, std::array{key, counter});
      ASSERT_TRUE(made.ok()) << made.status().message();
      for (int64_t i = 0; i < 4; i++) EXPECT_LT(element_as_f64((*made)[0], i), high) << dtype << " from " << low;
    }
}

}  // namespace rlx
