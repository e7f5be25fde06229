// SPDX-License-Identifier: Apache-2.0
// What opsets before 7 wrote otherwise.
#include <cmath>

#include "opened.h"

namespace rlx {

using onnx::Maker;
using Attributes = std::vector<Message>;

static std::string run_old(int64_t opset, const char* op_type, const std::vector<std::string>& in,
                           const Attributes& attributes, const Tensor& x) {
  Maker maker(opset);
  maker.input("x", 1, {"2", "3"}).f32("two", {2}, {0, 4});
  maker.node(op_type, in, {"y"}, attributes).output("y");
  return Opened(maker).run({x});
}

TEST(onnx_old, the_second_operand_begins_at_an_axis) {
  Attributes from_first{Maker::attr("broadcast", 1), Maker::attr("axis", 0)};
  EXPECT_EQ(run_old(6, "Add", {"x", "two"}, from_first, counting({2, 3})), "f32[2,3] 0 1 2 7 8 9");
  EXPECT_EQ(run_old(6, "Greater", {"x", "two"}, from_first, counting({2, 3})), "bool[2,3] 0 1 1 0 0 1");
}

// Sizes are computed by numbers, which read the same attributes.
TEST(onnx_old, sizes_are_computed_from_an_axis_on) {
  Maker maker(6);
  maker.input("x", 1, {"2", "3"}).i64("two", {1}, {2}).node("Shape", {"x"}, {"sizes"});
  maker.node("Mul", {"sizes", "two"}, {"y"}, {Maker::attr("broadcast", 1)}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 3})}), "i64[2] 4 6");
  Maker aligned(6);
  aligned.i64("square", {2, 2}, {1, 2, 3, 4}).i64("ten", {2}, {10, 20});
  aligned.node("Add", {"square", "ten"}, {"y"}, {Maker::attr("broadcast", 1), Maker::attr("axis", 0)}).output("y");
  EXPECT_EQ(Opened(aligned).run({}), "i64[2,2] 11 12 23 24");
}

TEST(onnx_old, element_types_have_names) {
  EXPECT_EQ(run_old(5, "Cast", {"x"}, {Maker::attr("to", "INT32")}, counting({2, 3})), "i32[2,3] 0 1 2 3 4 5");
  EXPECT_NE(run_old(5, "Cast", {"x"}, {Maker::attr("to", "INT31")}, counting({2, 3})).find("INT31"), std::string::npos);
}

TEST(onnx_old, sizes_are_attributes_or_floats) {
  EXPECT_EQ(run_old(4, "Reshape", {"x"}, {Maker::attr("shape", std::vector<int64_t>{0, 1, -1})}, counting({2, 3})),
            "f32[2,1,3] 0 1 2 3 4 5");
  Maker split(1);
  split.input("x", 1, {"3"}).f32("sizes", {2}, {1, 2});
  split.node("Split", {"x", "sizes"}, {"first", "y"}, {Maker::attr("axis", 0)}).output("y");
  EXPECT_EQ(Opened(split).run({counting({3})}), "f32[2] 1 2");
  Maker tile(5);
  tile.input("x", 1, {"2"}).f32("tiles", {1}, {2}).f32("axis", {1}, {0});
  tile.node("Tile", {"x", "tiles", "axis"}, {"y"}).output("y");
  EXPECT_EQ(Opened(tile).run({counting({2})}), "f32[4] 0 1 0 1");
}

TEST(onnx_old, a_mask_has_the_dtype_of_what_it_masks) {
  auto mask = [](int64_t opset) {
    Maker maker(opset);
    maker.input("x", 1, {"2"}).node("Dropout", {"x"}, {"unused", "y"}).output("y");
    return Opened(maker).run({counting({2})});
  };
  EXPECT_EQ(mask(7), "f32[2] 1 1");
  EXPECT_EQ(mask(10), "bool[2] 1 1");
}

TEST(onnx_old, an_image_grows_by_two_numbers) {
  Maker maker(6);
  maker.input("x", 1, {"1", "1", "1", "2"});
  maker.node("Upsample", {"x"}, {"y"}, {Maker::attr("height_scale", 2.0f), Maker::attr("width_scale", 2.0f)})
      .output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 1, 1, 2})}), "f32[1,1,2,4] 0 0 1 1 0 0 1 1");
}

TEST(onnx_old, the_exponent_of_a_pool_is_a_float) {
  Maker maker(1);
  maker.input("x", 1, {"1", "1", "1", "3"}).node("GlobalLpPool", {"x"}, {"y"}, {Maker::attr("p", 1.0f)}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 1, 1, 3})}), "f32[1,1,1,1] 3");
}

TEST(onnx_old, defaults_of_selu_were_rounded) {
  auto selu = [](int64_t opset) {
    Maker maker(opset);
    maker.input("x", 1, {"2"}).f32("large", {}, {1e8f}).node("Selu", {"x"}, {"s"}).node("Mul", {"s", "large"}, {"y"});
    return Opened(maker.output("y")).run({counting({2})});
  };
  EXPECT_EQ(selu(5), "f32[2] 0 105069992");
  EXPECT_EQ(selu(6), "f32[2] 0 105070104");
}

// The mean and the inverse deviation of the batch stand behind the running statistics.
TEST(onnx_old, a_batch_norm_with_five_outputs_trains) {
  for (int64_t opset : {7, 9, 13}) {
    Maker maker(opset);
    maker.input("x", 1, {"n", "1", "2"}).f32("two", {1}, {2}).f32("one", {1}, {1}).f32("running", {1}, {8});
    maker.node("BatchNormalization", {"x", "two", "one", "running", "running"}, {"y", "mean", "var", "m", "inverse"},
               {Maker::attr("momentum", 0.5f), Maker::attr("epsilon", 0.0f)});
    maker.node("Reshape", {"y", "all"}, {"list"}).i64("all", {1}, {-1});
    maker.node("Concat", {"list", "mean", "var", "m", "inverse"}, {"joined"}, {Maker::attr("axis", 0)});
    maker.f32("many", {}, {100}).node("Mul", {"joined", "many"}, {"hundredfold"}).node("Round", {"hundredfold"}, {"z"});
    Tensor x = counting({2, 1, 2});
    for (int64_t i = 0; i < 4; i++) x.as<float>()[i] = i < 2 ? 0.0f : 4.0f;
    EXPECT_EQ(Opened(maker.output("z")).run({x}), "f32[8] -100 -100 300 300 500 600 200 50");
  }
}

// A state stays as it is beyond the end of its sequence, and what is stacked there is 0. A sequence is reversed by
// itself.
TEST(onnx_old, a_scan_of_sequences_of_unequal_lengths) {
  for (bool is_reversed : {false, true}) {
    Maker body, maker(8);
    body.input("sum", 1, {}).input("x", 1, {}).input("z", 1, {}).node("Add", {"sum", "x"}, {"next"});
    body.node("Sub", {"next", "z"}, {"row"}).output("next").output("row");
    maker.input("lengths", 7, {"3"}).input("first", 1, {"3"}).input("xs", 1, {"3", "n"});
    maker.node("Scan", {"lengths", "first", "xs", "xs"}, {"last", "rows"},
               {Maker::attr("body", body), Maker::attr("num_scan_inputs", 2),
                Maker::attr("directions", std::vector<int64_t>{is_reversed, 0})});
    maker.i64("all", {1}, {-1}).node("Reshape", {"rows", "all"}, {"flat"});
    maker.node("Concat", {"last", "flat"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
    EXPECT_EQ(Opened(maker).run({list({2, 0, 3}), counting({3}), counting({3, 3})}),
              is_reversed ? "f32[12] 1 1 23 1 0 0 0 0 0 4 10 15" : "f32[12] 1 1 23 0 0 0 0 0 0 2 8 15");
  }
}

TEST(onnx_old, what_is_no_whole_number_is_refused) {
  for (float repeats : {0.5f, 1e30f, NAN}) {
    Maker tile(5);
    tile.input("x", 1, {"2"}).f32("tiles", {1}, {repeats}).f32("axis", {1}, {0});
    tile.node("Tile", {"x", "tiles", "axis"}, {"y"}).output("y");
    EXPECT_NE(Opened(tile).run({counting({2})}).find("'tiles' has"), std::string::npos) << repeats;
  }
}

TEST(onnx_old, an_old_norm_of_every_element) {
  Maker maker(7);
  maker.input("x", 1, {"n", "1", "2"}).f32("scale", {1, 2}, {1, 2}).f32("bias", {1, 2}, {10, 20});
  maker.f32("mean", {1, 2}, {0, 1}).f32("var", {1, 2}, {1, 4});
  maker.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"y"},
             {Maker::attr("spatial", 0), Maker::attr("epsilon", 0.0f)});
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 1, 2})}), "f32[2,1,2] 10 20 12 22");
}

}  // namespace rlx
