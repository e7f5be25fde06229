// SPDX-License-Identifier: Apache-2.0
// Numbers in attributes that no size is: below 0, or so large that sums and products with sizes wrap. Found by the
// variants of texts (tests/fuzz/variants.py).
#include "tests/support/transforms.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

TEST(far_numbers, are_refused_where_the_op_is_added) {
  struct Case {
    const char* inputs;
    const char* node;
    const char* says;
  };
  const Case cases[] = {
      {"x = input f32[5]", "y, i = top_k(x) k=-2", "'k' must be at least 0, not -2"},
      {"x = input f32[16]", "y = stft(x) frame=-2 hop=1", "'frame' must be at least 1, not -2"},
      {"x = input c64[2,4]", "y = irfft(x) n=9223372036854775807", "281474976710656, not [0,2305843009213693949]"},
      {"x = input i64[3]", "y, z = rope_table(x) dim=4611686018427387904", "'dim' must be from 0 to 1048576"},
      {"x = input f32[1,1,8]", "y = im2col(x) kernel=[9223372036854775807] dilation=[2]", "is above 2^48"},
      {"x = input f32[1,3,4]\n w = input f32[4,12]\n v = input f32[4,4]",
       "y = attention_block(x, w, v) num_heads=9223372036854775807", "'num_heads' must be from 1 to 1048576"},
  };
  for (const Case& it : cases) {
    auto graph = parse("graph {\n " + std::string(it.inputs) + "\n " + it.node + "\n output y\n}");
    std::string said(graph.status().message());
    EXPECT_NE(said.find(it.says), std::string::npos) << it.node << ": " << said;
  }
}

// Beyond the first position there is none, so how far a step would reach from it does not count.
TEST(far_numbers, a_step_may_be_beyond_all_sizes) {
  for (const char* end : {"-7", "9"}) {
    auto graph = parse("graph {\n x = input f32[6]\n y = slice(x) starts=[1] ends=[" + std::string(end) +
                       "] steps=[9223372036854775807]\n output y\n}");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    auto env = env_with(1);
    auto program = Program::compile(env, *graph, nullptr, *env->find_device("cpu"), {});
    ASSERT_TRUE(program.ok()) << program.status().message();
    auto results = (*program)->run({}, std::array{noise({6})}, {}, 1);
    ASSERT_TRUE(results.ok()) << results.status().message();
    EXPECT_EQ((*results)[0].count(), end[0] == '9');
  }
}

// A constant is not made that needs much more on the way than it takes or gives: of 2^21 positions each of these
// windows has all but four outside.
TEST(far_numbers, a_window_far_beyond_its_input_is_not_folded) {
  auto graph = parse(R"(graph {
    x = constant f32[1,1,4] {1, 2, 3, 4}
    y, i = max_pool_with_indices(x) kernel=[2097151] pad_lo=[1048575] pad_hi=[1048575]
    output y
  })");
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  auto folded = test::find_transform("fold")->run(*graph);
  ASSERT_TRUE(folded.ok()) << folded.status().message();
  EXPECT_NE(print(*folded).find("max_pool_with_indices"), std::string::npos) << print(*folded);
}

}  // namespace rlx
