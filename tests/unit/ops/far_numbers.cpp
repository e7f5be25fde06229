// SPDX-License-Identifier: Apache-2.0
// Numbers in attributes that no size is: below 0, or so large that sums and products with sizes wrap. Found by the
// variants of texts (tests/fuzz/variants.py).
#include "ops/interpret.h"
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
      {"x = input f32[1,4294967296]\n k = input u32[2]\n c = input u32[4]",
       "y, z = categorical(x, k, c) index_dtype=i32", "every position of an axis of size 4294967296"},
      {"x = input f32[1,4294967296]\n k = input u32[2]\n c = input u32[4]",
       "y, z = sample_token(x, k, c) index_dtype=i32", "every position of an axis of size 4294967296"},
      {"x = input f32[4294967296,4294967296]", "y, p, s = lu(x) index_dtype=i32", "of a matrix of size 4294967296"},
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

// The same values on the device as by the interpreter.
static std::vector<double> numbers_of(const std::string& statements) {
  auto graph = parse("graph {\n" + statements + "\n output y\n}");
  EXPECT_TRUE(graph.ok()) << graph.status().message();
  if (!graph.ok()) return {};
  auto by_hand = interpret(*graph, {});
  EXPECT_TRUE(by_hand.ok()) << by_hand.status().message();
  auto env = env_with(1);
  auto program = Program::compile(env, *graph, nullptr, *env->find_device("cpu"), {});
  EXPECT_TRUE(program.ok()) << program.status().message();
  if (!by_hand.ok() || !program.ok()) return {};
  auto results = (*program)->run({}, {}, {}, 1);
  EXPECT_TRUE(results.ok()) << results.status().message();
  if (!results.ok()) return {};
  std::vector<double> numbers;
  for (int64_t i = 0; i < (*results)[0].count(); i++) {
    numbers.push_back(element_as_f64((*results)[0], i));
    EXPECT_EQ(numbers.back(), element_as_f64((*by_hand)[0], i)) << statements;
  }
  return numbers;
}

// A double would round these, or an index dtype does not hold them.
TEST(far_numbers, whole_numbers_of_attributes_are_exact) {
  using Numbers = std::vector<double>;
  const std::string scores = "x = constant f32[2,2] {-1, -2, -3, -4}\n";
  EXPECT_EQ(
      numbers_of(scores + "l = constant i64[2] {9007199254740993, 1}\n y = nll_loss(x, l) ignore=9007199254740993"),
      (Numbers{0, 4}));
  EXPECT_EQ(numbers_of(scores + "l = constant i64[2] {9223372036854775807, 0}\n"
                                " y = nll_loss(x, l) ignore=9223372036854775807"),
            (Numbers{0, 3}));
  EXPECT_EQ(numbers_of(scores + "l = constant i32[2] {0, 1}\n y = nll_loss(x, l) ignore=1099511627776 reduction=mean"),
            (Numbers{2.5}));
  for (std::string lambd : {"300", "255", "1e300", "inf"})
    EXPECT_EQ(numbers_of("x = constant u8[3] {0, 7, 255}\n y = shrink(x) bias=1 lambd=" + lambd), (Numbers{0, 0, 0}));
  EXPECT_EQ(numbers_of("x = constant u8[3] {0, 7, 254}\n y = shrink(x) bias=1 lambd=-300"), (Numbers{1, 8, 255}));
  EXPECT_EQ(numbers_of("x = constant i8[3] {-128, 7, 127}\n y = shrink(x) bias=1 lambd=126.5"),
            (Numbers{-127, 0, 126}));
  EXPECT_EQ(numbers_of("y = range() start=1e19 step=-2048 count=2 dtype=u64"), (Numbers{1e19, 1e19 - 2048}));
  EXPECT_EQ(numbers_of("y = range() start=2048 step=1e19 count=2 dtype=u64"), (Numbers{2048, 1e19 + 2048}));
  EXPECT_EQ(numbers_of("x = constant f32[1,4] {1, 2, 3, 4}\n z = stft(x) frame=4 hop=9223372036854775807\n"
                       " y = real(z)"),
            (Numbers{10, -2, -2}));
}

// A window that is wider than all sizes is none.
TEST(far_numbers, the_widest_window_sees_every_key) {
  for (const char* sizes : {"1,1,2,4", "1,1,5,4"})
    for (const char* align : {"lower_right", "upper_left"}) {
      std::string inputs = format(" k = input f32[1,1,3,4]\n q = input f32[{}]\n", sizes);
      std::string node = format("attention(q, k, k) align={}", align);
      auto exec_of_node = [&](const char* attrs) {
        return exec_of("graph {\n" + inputs + " y = " + node + attrs + "\n output y\n}");
      };
      auto plain = exec_of_node("");
      auto wide = exec_of_node(" window_left=9223372036854775807 window_right=9223372036854775807");
      ASSERT_TRUE(plain && wide);
      for (Exec* exec : {plain.get(), wide.get()})
        for (size_t slot = 0; slot < 2; slot++) {
          Tensor like = exec->tensor(SlotKind::kInput, slot).value();
          Tensor given = noise({like.dims().begin(), like.dims().end()}, static_cast<uint32_t>(slot));
          write(*exec, slot, {given.as<float>(), given.as<float>() + given.count()});
        }
      ASSERT_TRUE(plain->run().ok() && wide->run().ok());
      expect_near(shown(*wide, SlotKind::kOutput, 0), shown(*plain, SlotKind::kOutput, 0));
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
