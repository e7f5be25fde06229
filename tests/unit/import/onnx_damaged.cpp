// SPDX-License-Identifier: Apache-2.0
// ONNX files that are damaged, or ask for far too much: refused by a message, in little time and memory. Most were
// found by fuzzing.
#include "opened.h"

namespace rlx {

using onnx::Maker;

TEST(onnx_damaged, the_farthest_bound_of_a_slice_asks_for_no_memory) {
  Maker maker;
  maker.input("x", 1, {"n"}).input("s", 7, {"1"}).i64("one", {1}, {1}).i64("end", {1}, {INT32_MAX});
  maker.node("Tile", {"x", "s"}, {"a"}).node("Slice", {"a", "one", "end"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2}), list({2})}), "f32[3] 1 0 1");
}

// Half of a bound above every size is none either.
TEST(onnx_damaged, the_farthest_bound_of_a_slice_in_steps_asks_for_no_memory) {
  Maker maker;
  maker.input("x", 1, {"3"})
      .input("s", 7, {"1"})
      .i64("one", {1}, {1})
      .i64("end", {1}, {INT32_MAX})
      .i64("two", {1}, {2});
  maker.node("Tile", {"x", "s"}, {"a"}).node("Slice", {"a", "one", "end", "", "two"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({3}), list({2})}), "f32[3] 1 0 2");
  auto program = (*opened.model)->get("", {});
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE((*program)->plan().outputs[0].is_open);
}

TEST(onnx_damaged, boxes_without_end_of_pieces_are_refused) {
  Maker maker;
  maker.input("x", 1, {"1", "1", "8", "8"}).input("boxes", 1, {"2", "5"});
  std::vector<int64_t> pieces{1, int64_t{1} << 40};
  maker.node("MaxRoiPool", {"x", "boxes"}, {"y"}, {Maker::attr("pooled_shape", pieces)}).output("y");
  EXPECT_EQ(maker.import().status().code(), Code::kUnsupported);
}

TEST(onnx_damaged, attributes_that_contradict_what_they_describe_are_refused) {
  auto message = [](const Maker& maker) { return std::string(maker.import().status().message()); };
  Maker conv, rotary, quantize;
  conv.input("x", 1, {"1", "1", "4"}).f32("w", {1, 1, 3}, {1, 1, 1});
  conv.node("Conv", {"x", "w"}, {"y"}, {Maker::attr("kernel_shape", std::vector<int64_t>{2})}).output("y");
  EXPECT_NE(message(conv).find("'kernel_shape' says 2, the weights 3"), std::string::npos) << message(conv);
  rotary = Maker(23);
  rotary.input("x", 1, {"1", "1", "2", "8"}).input("t", 1, {"1", "2", "4"});
  rotary.node("RotaryEmbedding", {"x", "t", "t"}, {"y"}, {Maker::attr("rotary_embedding_dim", 4)}).output("y");
  EXPECT_NE(message(rotary).find("the tables have 8"), std::string::npos) << message(rotary);
  quantize = Maker(21);
  quantize.input("x", 1, {"2"}).f32("s", {}, {1}).input("z", 2, {});
  quantize.node("QuantizeLinear", {"x", "s", "z"}, {"y"}, {Maker::attr("output_dtype", 3)}).output("y");
  EXPECT_NE(message(quantize).find("'output_dtype' is i8, the zero point u8"), std::string::npos) << message(quantize);
}

// (n - 1) * (2^31 - 1) as a number that is read, not as a size of memory.
TEST(onnx_damaged, a_far_number_of_sizes_takes_no_memory) {
  Maker maker;
  maker.input("x", 1, {"n"}).i64("one", {1}, {1}).i64("far", {1}, {INT32_MAX});
  maker.node("Shape", {"x"}, {"s"}).node("Sub", {"s", "one"}, {"t"}).node("Mul", {"t", "far"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "i64[1] 4294967294");
  EXPECT_EQ(Opened(maker).run({counting({0})}), "i64[1] -2147483647");
}

TEST(onnx_damaged, lists_of_another_length_are_refused) {
  Maker maker;
  maker.input("x", 1, {"1", "1", "3", "3"}).f32("w", {1, 1, 1, 1}, {1});
  maker.node("ConvTranspose", {"x", "w"}, {"y"}, {Maker::attr("strides", std::vector<int64_t>{2})}).output("y");
  EXPECT_NE(Opened(maker).run({}).find("do not suit 2 spatial axes"), std::string::npos);
}

TEST(onnx_damaged, strides_of_another_number_than_the_axes_are_refused_by_pools_too) {
  Maker maker(11);
  maker.input("x", 1, {"1", "1", "2", "2"}).input("at", 7, {"1", "1", "2", "2"});
  maker.node(
      "MaxUnpool", {"x", "at"}, {"y"},
      {Maker::attr("kernel_shape", std::vector<int64_t>{2, 2}), Maker::attr("strides", std::vector<int64_t>{7})});
  maker.output("y");
  EXPECT_NE(Opened(maker).run({}).find("do not suit 2 spatial axes"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, a_crop_has_as_many_sizes_as_axes) {
  Maker maker(13);
  maker.input("x", 1, {"1", "1", "3", "3"}).input("roi", 1, {"8"}).i64("sizes", {3}, {1, 1, 2});
  maker.node("Resize", {"x", "roi", "", "sizes"}, {"y"},
             {Maker::attr("mode", "linear"), Maker::attr("coordinate_transformation_mode", "tf_crop_and_resize")});
  maker.output("y");
  EXPECT_NE(Opened(maker).run({}).find("'sizes' does not suit the axes"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, a_linear_crop_is_of_numbers) {
  Maker maker(13);
  maker.input("x", 9, {"1", "1", "3", "3"}).input("roi", 1, {"8"}).i64("sizes", {4}, {1, 1, 2, 2});
  maker.node("Resize", {"x", "roi", "", "sizes"}, {"y"},
             {Maker::attr("mode", "linear"), Maker::attr("coordinate_transformation_mode", "tf_crop_and_resize")});
  maker.output("y");
  EXPECT_NE(Opened(maker).run({}).find("bool"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, an_axis_of_a_scalar_is_refused) {
  std::vector<int64_t> one{0};
  for (int opset : {6, 18}) {
    Maker maker(opset);
    maker.input("x", 1, {}).i64("one", {1}, {0}).i64("two", {2}, {0, 1});
    if (opset == 6)
      maker.node("Slice", {"x"}, {"y"},
                 {Maker::attr("axes", one), Maker::attr("starts", one), Maker::attr("ends", one)});
    else
      maker.node("Pad", {"x", "two", "", "one"}, {"y"});
    maker.output("y");
    EXPECT_NE(Opened(maker).run({}).find("axis 0 of a value of rank 0"), std::string::npos) << Opened(maker).run({});
  }
}

TEST(onnx_damaged, a_size_beyond_all_sizes_is_refused) {
  Maker maker;
  maker.input("x", 1, {"4611756857242251517"}).node("Neg", {"x"}, {"y"}).output("y");
  EXPECT_NE(Opened(maker).run({}).find("the size 4611756857242251517 is above 2^48"), std::string::npos)
      << Opened(maker).run({});
}

TEST(onnx_damaged, weights_of_another_rank_than_the_image_are_refused) {
  Maker maker;
  maker.input("x", 1, {"1", "1", "3"}).f32("w", {1, 1, 1, 1}, {1});
  maker.node("Conv", {"x", "w"}, {"y"}, {Maker::attr("kernel_shape", std::vector<int64_t>{1})}).output("y");
  EXPECT_NE(Opened(maker).run({}).find("do not suit 1 spatial axes"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, an_if_has_a_condition) {
  Maker yes, no, maker;
  yes.input("a", 1, {"1"}).output("a"), no.input("a", 1, {"1"}).output("a");
  maker.node("If", {}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  EXPECT_NE(Opened(maker).run({}).find("its condition is missing"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, a_node_without_outputs_is_refused) {
  Maker maker(18);
  maker.input("x", 1, {"4"}).node("Split", {"x"}, {}).node("Abs", {"x"}, {"y"}).output("y");
  std::string said(maker.import().status().message());
  EXPECT_NE(said.find("(Split of ai.onnx, opset 18): it has no outputs"), std::string::npos) << said;
}

TEST(onnx_damaged, a_step_of_training_has_all_its_inputs) {
  Maker maker;
  maker.input("rate", 1, {}).input("steps", 7, {}).input("x", 1, {"2"}).input("g", 1, {"2"});
  maker.node("Adagrad", {"rate", "steps", "x", "", "g"}, {"y", "h"}, {}, "ai.onnx.preview.training").output("y");
  EXPECT_NE(Opened(maker).run({}).find("its input 3 is missing"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, bounds_of_a_slice_are_as_many_as_axes_at_most) {
  Maker maker(13);
  maker.input("x", 1, {"2"}).input("starts", 7, {"281474976710655"}).input("ends", 7, {"1"});
  maker.node("Slice", {"x", "starts", "ends"}, {"y"}).output("y");
  std::string said(maker.import().status().message());
  EXPECT_NE(said.find("281474976710655 axes, of rank 1"), std::string::npos) << said;
}

TEST(onnx_damaged, a_kernel_has_a_size) {
  Maker maker(11);
  maker.input("x", 1, {"1", "1", "3"}).input("w", 1, {"1", "1", "3"});
  maker.node("ConvTranspose", {"x", "w"}, {"y"},
             {Maker::attr("kernel_shape", std::vector<int64_t>{INT64_MIN}),
              Maker::attr("output_shape", std::vector<int64_t>{9})});
  maker.output("y");
  EXPECT_NE(Opened(maker).run({}).find("'kernel_shape' says"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, a_loop_has_one_condition) {
  for (const char* empty : {"trips", "condition"}) {
    Maker body, maker;
    body.input("i", 7, {}).input("more", 9, {}).input("sum", 1, {}).node("Abs", {"sum"}, {"next"});
    body.node("Identity", {"more"}, {"again"}).output("again").output("next");
    maker.input("x", 1, {})
        .i64("one", {}, {1})
        .i64("none", {0}, {})
        .node("Cast", {"none"}, {"no"}, {Maker::attr("to", 9)});
    bool has_trips = empty == std::string("condition");
    maker.node("Loop", {has_trips ? "one" : "none", has_trips ? "no" : "", "x"}, {"y"}, {Maker::attr("body", body)});
    maker.output("y");
    EXPECT_NE(Opened(maker).run({}).find("not one number"), std::string::npos) << Opened(maker).run({});
  }
}

// Every trip copies the sequence, so that thousands of them would take seconds.
TEST(onnx_damaged, a_sequence_that_grows_without_end_is_refused) {
  Maker body, maker;
  body.input("i", 7, {}).input("more", 9, {}).sequence("s", 1).i64("zero", {1}, {0}).i64("one", {1}, {1});
  body.node("Add", {"i", "one"}, {"end"}).node("Slice", {"x", "zero", "end"}, {"row"});
  body.node("SequenceInsert", {"s", "row"}, {"longer"}).node("Identity", {"more"}, {"again"});
  body.output("again").output("longer");
  maker.input("x", 1, {"9999"}).node("SequenceEmpty", {}, {"none"});
  maker.node("Loop", {"", "", "none"}, {"all"}, {Maker::attr("body", body)}).node("SequenceLength", {"all"}, {"y"});
  maker.output("y");
  std::string said(maker.import().status().message());
  EXPECT_NE(said.find("far too many nodes"), std::string::npos) << said;
}

TEST(onnx_damaged, n_grams_have_a_length) {
  Maker maker(9);
  maker.input("x", 7, {"n"});
  maker.node(
      "TfIdfVectorizer", {"x"}, {"y"},
      {Message().text(1, "mode").text(4, "TF").number(20, 3), Maker::attr("min_gram_length", 1),
       Maker::attr("max_gram_length", INT64_MIN), Maker::attr("max_skip_count", 5),
       Maker::attr("ngram_counts", std::vector<int64_t>{0}), Maker::attr("ngram_indexes", std::vector<int64_t>{0}),
       Maker::attr("pool_int64s", std::vector<int64_t>{7})});
  maker.output("y");
  EXPECT_NE(Opened(maker).run({}).find("n-grams without a length"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, gates_of_streams_may_be_one_number) {
  Maker maker;
  maker.input("x", 1, {"1", "4"}).input("gate", 1, {});
  maker.node("HyperConnectionPreMix", {"x", "gate"}, {"y"}, {Maker::attr("num_branches", 2)}, "com.microsoft");
  maker.output("y");
  Tensor two = *Tensor::create(DType::kF32, std::span<const int64_t>());
  *two.as<float>() = 2;
  EXPECT_EQ(Opened(maker).run({counting({1, 4}), two}), "f32[1,2] 4 8");
}

TEST(onnx_damaged, features_without_inputs_are_refused) {
  Maker maker;
  maker.input("x", 1, {"2"})
      .node("FeatureVectorizer", {}, {"z"}, {}, "ai.onnx.ml")
      .node("Abs", {"x"}, {"y"})
      .output("y");
  EXPECT_NE(Opened(maker).run({}).find("there is nothing to join"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, weights_without_axes_are_refused) {
  Maker maker;
  maker.input("x", 2, {"1", "2", "3"}).input("w", 2, {}).input("zero", 2, {"2"}).input("scale", 1, {});
  maker.node("QLinearConv", {"x", "scale", "", "w", "scale", "zero", "scale", ""}, {"y"}).output("y");
  EXPECT_NE(Opened(maker).run({}).find("do not suit"), std::string::npos) << Opened(maker).run({});
}

TEST(onnx_damaged, a_first_input_that_is_missing_is_named) {
  Maker maker(6);
  maker.input("x", 1, {"2"});
  maker.node("Pad", {}, {"y"}, {Maker::attr("pads", std::vector<int64_t>{0, 1}), Maker::attr("value", 2.0F)})
      .output("y");
  EXPECT_NE(Opened(maker).run({}).find("its first input is missing"), std::string::npos);
}

TEST(onnx_damaged, an_input_has_no_negative_size) {
  Maker maker;
  maker.input("x", 1, {"a - b", "1"}).input("s", 1, {"a", "b"}).node("Exp", {"x"}, {"y"}).output("y");
  auto imported = maker.import();
  ASSERT_TRUE(imported.ok());
  ASSERT_EQ(imported->graph.guards().size(), 1U);
  EXPECT_EQ(imported->graph.guards()[0].relation, Guard::kLessEqual);
  EXPECT_EQ(imported->graph.guards()[0].b.text(), "a - b");
}

}  // namespace rlx
