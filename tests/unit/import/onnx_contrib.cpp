// SPDX-License-Identifier: Apache-2.0
// Node kinds of the domain com.microsoft that ONNX Runtime computes on no CPU: tests/peer/contrib.py has the others.
#include "opened.h"

namespace rlx {

using onnx::Maker;

static constexpr const char* kMicrosoft = "com.microsoft";

TEST(onnx_contrib, a_spectrum_is_pairs_and_goes_back) {
  Maker there, back;
  there.input("x", 1, {"1", "4"}).node("Rfft", {"x"}, {"y"}, {Maker::attr("signal_ndim", 1)}, kMicrosoft).output("y");
  EXPECT_EQ(Opened(there).run({counting({1, 4})}), "f32[1,3,2] 6 0 -2 2 -2 0");
  back.input("x", 1, {"1", "4"}).node("Rfft", {"x"}, {"y"}, {}, kMicrosoft);
  back.node("Irfft", {"y"}, {"z"}, {}, kMicrosoft).output("z");
  EXPECT_EQ(Opened(back).run({counting({1, 4})}), "f32[1,4] 0 1 2 3");
}

TEST(onnx_contrib, two_axes_have_no_spectrum) {
  Maker maker;
  maker.input("x", 1, {"4", "4"}).node("Rfft", {"x"}, {"y"}, {Maker::attr("signal_ndim", 2)}, kMicrosoft).output("y");
  EXPECT_EQ(maker.import().status().code(), Code::kUnsupported);
}

TEST(onnx_contrib, dropout_after_a_bias_drops_nothing) {
  Maker maker;
  maker.input("x", 1, {"n", "2"}).f32("bias", {2}, {1, 2}).f32("more", {2}, {10, 20});
  maker.node("BiasDropout", {"x", "bias", "more"}, {"y", "kept"}, {}, kMicrosoft).output("y").output("kept");
  EXPECT_EQ(Opened(maker).run({counting({2, 2})}), "f32[2,2] 11 23 13 25");
}

TEST(onnx_contrib, products_are_activated) {
  Maker relu, gelu;
  relu.input("x", 1, {"2", "2"}).f32("w", {2, 2}, {1, 0, 0, -1});
  relu.node("FusedMatMulActivation", {"x", "w"}, {"y"}, {Maker::attr("activation", "Relu")}, kMicrosoft).output("y");
  EXPECT_EQ(Opened(relu).run({counting({2, 2})}), "f32[2,2] 0 0 2 0");
  gelu.input("x", 1, {"2", "1"}).f32("w", {1, 2}, {20, -20}).f32("bias", {2}, {30, 0});
  gelu.node("GemmFastGelu", {"x", "w", "bias"}, {"y"}, {}, kMicrosoft).output("y");
  EXPECT_EQ(Opened(gelu).run({counting({2, 1})}), "f32[2,2] 30 0 50 0");
}

// The sine of the angle is 1.
TEST(onnx_contrib, all_heads_turn_by_the_same_angles) {
  Maker maker;
  maker.f32("angle", {1, 1, 2}, {1.5707964F, 1.5707964F}).f32("none", {1, 3, 1, 2}, {0, 0, 0, 0, 0, 0});
  maker.input("turned", 1, {"1", "3", "1", "2"});
  maker.node("GemmaRotaryEmbedding", {"angle", "none", "turned", "none", "turned"}, {"q", "k"}, {}, kMicrosoft);
  EXPECT_EQ(Opened(maker.output("q").output("k")).run({counting({1, 3, 1, 2})}), "f32[1,3,1,2] 0 1 2 3 4 5");
}

}  // namespace rlx
