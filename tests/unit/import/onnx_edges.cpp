// SPDX-License-Identifier: Apache-2.0
// Graphs at the edges of ONNX: sizes of 0 and 1, bounds that may be negative, sizes that the run finds.
#include <limits>

#include "opened.h"

namespace rlx {

using onnx::Maker;

TEST(onnx_edges, an_open_size_that_is_1_broadcasts) {
  Maker maker;
  maker.input("y", 1, {"S", "2"}).i64("from", {1}, {-1}).i64("to", {1}, {100});
  maker.node("Slice", {"y", "from", "to"}, {"last"}).node("Sub", {"last", "y"}, {"z"}).output("z");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({3, 2})}), "f32[3,2] 4 4 2 2 0 0");
  EXPECT_EQ(opened.run({counting({1, 2})}), "f32[1,2] 0 0");
  EXPECT_EQ(opened.run({counting({0, 2})}), "f32[0,2]");
}

TEST(onnx_edges, an_axis_cut_to_1_is_squeezed) {
  Maker maker;
  maker.input("x", 1, {"n", "m"}).i64("zero", {1}, {0}).i64("one", {1}, {1});
  maker.node("Slice", {"x", "zero", "one"}, {"first"}).node("Squeeze", {"first", "zero"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({3, 2})}), "f32[2] 0 1");
  EXPECT_EQ(opened.run({counting({2, 0})}), "f32[0]");
}

TEST(onnx_edges, squeeze_drops_the_axes_that_are_1_in_the_run) {
  Maker maker;
  maker.input("x", 1, {"n", "m"}).node("Squeeze", {"x"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2, 2})}), "f32[2,2] 0 1 2 3");
  EXPECT_EQ(opened.run({counting({1, 2})}), "f32[2] 0 1");
  EXPECT_EQ(opened.run({counting({2, 1})}), "f32[2] 0 1");
  EXPECT_EQ(opened.run({counting({1, 1})}), "f32[] 0");
}

// The pads suit the rank that x has where n is 1.
TEST(onnx_edges, what_follows_an_axis_that_is_squeezed_suits_the_smaller_rank) {
  Maker maker(10);
  maker.input("x", 1, {"n", "3"}).node("Squeeze", {"x"}, {"row"});
  maker.node("Pad", {"row"}, {"y"}, {Maker::attr("pads", std::vector<int64_t>{1, 1})}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 3})}), "f32[5] 0 0 1 2 0");
  EXPECT_NE(Opened(maker).run({counting({2, 3})}).find("'pads' does not hold two numbers per axis"), std::string::npos);
}

TEST(onnx_edges, a_bound_may_be_the_size_less_one) {
  Maker maker;
  maker.input("x", 1, {"n", "m"}).i64("zero", {1}, {0}).i64("one", {1}, {1}).node("Shape", {"x"}, {"shape"});
  maker.node("Gather", {"shape", "one"}, {"m"}).node("Sub", {"m", "one"}, {"last"});
  maker.node("Slice", {"x", "zero", "last", "one"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2, 3})}), "f32[2,2] 0 1 3 4");
  EXPECT_EQ(opened.run({counting({2, 1})}), "f32[2,0]");
  EXPECT_EQ(opened.run({counting({2, 0})}), "f32[2,0]");
}

TEST(onnx_edges, a_bound_that_is_negative_at_some_sizes_counts_from_the_end) {
  Maker maker;
  maker.input("x", 1, {"n"}).input("other", 1, {"m"}).i64("two", {1}, {2}).i64("far", {1}, {99}).i64("zero", {1}, {0});
  maker.node("Shape", {"other"}, {"m"}).node("Sub", {"m", "two"}, {"at"});
  maker.node("Slice", {"x", "at", "far", "zero"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({4}), counting({3})}), "f32[3] 1 2 3");
  EXPECT_EQ(opened.run({counting({4}), counting({1})}), "f32[1] 3");
  EXPECT_EQ(opened.run({counting({1}), counting({0})}), "f32[1] 0");
}

TEST(onnx_edges, a_start_before_the_front_is_the_front_also_downwards) {
  Maker maker;
  maker.input("x", 1, {"n"}).i64("from", {1}, {-4}).i64("to", {1}, {-9}).i64("zero", {1}, {0}).i64("step", {1}, {-1});
  maker.node("Slice", {"x", "from", "to", "zero", "step"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({6})}), "f32[3] 2 1 0");
  EXPECT_EQ(opened.run({counting({2})}), "f32[1] 0");
  EXPECT_EQ(opened.run({counting({0})}), "f32[0]");
}

TEST(onnx_edges, a_slice_that_only_a_size_cuts_is_reshaped) {
  Maker maker;
  maker.input("x", 1, {"n", "2"}).i64("zero", {1}, {0}).i64("most", {1}, {64}).i64("rest", {1}, {-1});
  maker.node("Slice", {"x", "zero", "most"}, {"cut"}).node("Shape", {"x"}, {"shape"});
  maker.node("Gather", {"shape", "zero"}, {"n"}).node("Concat", {"n", "rest"}, {"to"}, {Maker::attr("axis", 0)});
  maker.node("Reshape", {"cut", "to"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2, 2})}), "f32[2,2] 0 1 2 3");
  EXPECT_EQ(opened.run({counting({128, 2})}).substr(0, 12), "f32[128,1] 0");
}

TEST(onnx_edges, indices_count_from_both_ends_of_one_axis) {
  Maker maker;
  maker.input("x", 1, {"4"}).i64("at", {2, 2}, {0, -4, 1, -3}).node("Gather", {"x", "at"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({4})}), "f32[2,2] 0 0 1 1");
}

TEST(onnx_edges, a_window_slides) {
  Maker maker;
  maker.input("x", 1, {"p"})
      .input("q", 1, {"n"})
      .i64("zero", {}, {0})
      .i64("one", {}, {1})
      .i64("width", {3, 1}, {0, 1, 2});
  maker.node("Shape", {"q"}, {"shape"})
      .node("Gather", {"shape", "zero"}, {"n"})
      .node("Range", {"zero", "n", "one"}, {"r"});
  maker.node("Add", {"r", "width"}, {"at"}).node("Gather", {"x", "at"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({6}), counting({4})}), "f32[3,4] 0 1 2 3 1 2 3 4 2 3 4 5");
  EXPECT_EQ(opened.run({counting({3}), counting({1})}), "f32[3,1] 0 1 2");
}

TEST(onnx_edges, a_cast_like_another_may_leave_the_range) {
  Maker maker(19);
  maker.input("x", 1, {"n"}).input("like", 17, {});  // f8e4m3
  maker.node("CastLike", {"x", "like"}, {"small"}, {Maker::attr("saturate", 0)});
  maker.node("Cast", {"small"}, {"wide"}, {Maker::attr("to", 1)}).node("IsNaN", {"wide"}, {"nan"});
  maker.node("Cast", {"nan"}, {"y"}, {Maker::attr("to", 7)}).output("y");
  Tensor x = counting({2}), like = *Tensor::create(DType::kF8E4M3, {});
  x.as<float>()[1] = 1e6f;
  EXPECT_EQ(Opened(maker).run({x, like}), "i64[2] 0 1");
}

TEST(onnx_edges, a_list_is_normalised_as_one_channel) {
  Maker maker(15);
  maker.input("x", 1, {"n"}).f32("s", {1}, {2}).f32("b", {1}, {3}).f32("m", {1}, {0}).f32("v", {1}, {1});
  maker.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"n"}).node("Round", {"n"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "f32[3] 3 5 7");
}

TEST(onnx_edges, the_depth_of_a_one_hot_may_be_a_float) {
  Maker constant, given;
  constant.input("x", 7, {"n"}).f32("depth", {}, {3}).f32("values", {2}, {0, 1});
  given.input("x", 7, {"n"}).input("depth", 1, {}).f32("values", {2}, {0, 1});
  for (Maker* maker : {&constant, &given}) maker->node("OneHot", {"x", "depth", "values"}, {"y"}).output("y");
  Tensor three = *Tensor::create(DType::kF32, {});
  *three.as<float>() = 3;
  EXPECT_EQ(Opened(constant).run({list({1, -1, 7})}), "f32[3,3] 0 1 0 0 0 1 0 0 0");
  EXPECT_EQ(Opened(given).run({list({1, -1, 7}), three}), "f32[3,3] 0 1 0 0 0 1 0 0 0");
}

TEST(onnx_edges, what_follows_a_refused_node_is_refused_by_name_too) {
  Maker maker;
  maker.input("x", 1, {"n"}).node("Foo", {"x"}, {"a"}).node("Neg", {"a"}, {"b"}).node("Bar", {"b"}, {"y"}).output("y");
  std::string why(maker.import().status().message());
  EXPECT_NE(why.find("[Foo of ai.onnx"), std::string::npos) << why;
  EXPECT_NE(why.find("[Bar of ai.onnx"), std::string::npos) << why;
  EXPECT_EQ(why.find("Neg"), std::string::npos) << why;
}

TEST(onnx_edges, a_body_that_reads_what_waits_for_a_static_input_waits_too) {
  Maker yes, no, maker;
  yes.node("Neg", {"sum"}, {"a"}).output("a");
  no.node("Identity", {"sum"}, {"b"}).output("b");
  maker.input("x", 1, {"n", "2"}).input("axes", 7, {"1"}).input("p", 9, {}).node("ReduceSum", {"x", "axes"}, {"sum"});
  maker.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  Tensor p = *Tensor::create(DType::kBool, {});
  *p.as<uint8_t>() = 1;
  EXPECT_EQ(Opened(maker).run({counting({2, 2}), list({0}), p}), "f32[1,2] -2 -4");
}

// No general graph has an axis less where an input says that it is 1.
TEST(onnx_edges, an_axis_that_an_input_makes_1_is_squeezed) {
  Maker maker;
  maker.input("x", 1, {}).input("shape", 7, {"1"}).i64("square", {2}, {1, 1});
  maker.node("Reshape", {"x", "shape"}, {"row"}).node("Squeeze", {"row"}, {"scalar"});
  maker.node("Reshape", {"scalar", "square"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({}), list({-1})}), "f32[1,1] 0");
}

TEST(onnx_edges, integers_have_means_and_norms) {
  Maker maker;
  maker.input("x", 7, {"n"}).node("ReduceMean", {"x"}, {"a"}).node("ReduceL2", {"x"}, {"b"});
  maker.node("Concat", {"a", "b"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  EXPECT_EQ(Opened(maker).run({list({-3, -4})}), "i64[2] -3 5");
}

TEST(onnx_edges, the_largest_of_an_empty_axis_is_nowhere) {
  Maker maker;
  maker.input("x", 1, {"n", "m"}).node("Hardmax", {"x"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2, 0})}), "f32[2,0]");
  EXPECT_EQ(opened.run({counting({2, 2})}), "f32[2,2] 0 1 0 1");
}

TEST(onnx_edges, sizes_pass_through_floats) {
  Maker maker;
  maker.input("x", 1, {"n"}).f32("two", {}, {2}).node("Shape", {"x"}, {"shape"});
  maker.node("Cast", {"shape"}, {"wide"}, {Maker::attr("to", 1)}).node("Mul", {"wide", "two"}, {"more"});
  maker.node("Floor", {"more"}, {"whole"}).node("Cast", {"whole"}, {"to"}, {Maker::attr("to", 7)});
  maker.node("ConstantOfShape", {"to"}, {"y"}).output("y");
  auto imported = maker.import();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(text_of(imported->graph.type(imported->graph.outputs()[0].value).dims), "[2*n]");
}

TEST(onnx_edges, integers_beyond_all_sizes_keep_their_digits) {
  Maker maker;
  maker.input("x", 1, {"n"}).i64("far", {1}, {INT64_MIN + 1}).i64("one", {1}, {1}).node("Shape", {"x"}, {"shape"});
  maker.node("Concat", {"shape", "far"}, {"list"}, {Maker::attr("axis", 0)}).node("Mul", {"list", "one"}, {"z"});
  maker.node("Sub", {"z", "far"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}).substr(0, 7), "i64[2] ");
}

// ---- sizes that the run finds ----

TEST(onnx_edges, a_size_that_nobody_reads_goes_with_its_node) {
  Maker maker;
  maker.input("x", 7, {"n"}).input("depth", 7, {}).f32("values", {2}, {0, 1}).i64("zero", {}, {0});
  maker.node("OneHot", {"x", "depth", "values"}, {"hot"}).node("Shape", {"hot"}, {"shape"});
  maker.node("Gather", {"shape", "zero"}, {"y"}).output("y");
  Tensor depth = *Tensor::create(DType::kI64, {});
  *depth.as<int64_t>() = 4;
  EXPECT_EQ(Opened(maker).run({list({1, 2, 3}), depth}), "i64[] 3");
}

TEST(onnx_edges, a_size_may_be_divided_by_one_that_the_run_finds) {
  Maker maker;
  maker.input("x", 1, {"4"}).input("s", 7, {"2"}).input("z", 1, {"6"}).i64("rest", {1}, {-1}).i64("zero", {1}, {0});
  maker.node("Reshape", {"x", "s"}, {"a"}).node("Shape", {"a"}, {"shape"}).node("Gather", {"shape", "zero"}, {"rows"});
  maker.node("Concat", {"rest", "rows"}, {"to"}, {Maker::attr("axis", 0)})
      .node("Reshape", {"z", "to"}, {"y"})
      .output("y");
  EXPECT_EQ(Opened(maker).run({counting({4}), list({2, 2}), counting({6})}), "f32[3,2] 0 1 2 3 4 5");
}

TEST(onnx_edges, a_size_that_the_run_finds_may_bound_another) {
  Maker maker;
  maker.input("x", 1, {"n"})
      .input("s", 7, {"2"})
      .node("Reshape", {"x", "s"}, {"a"})
      .node("NonZero", {"a"}, {"y"})
      .output("y");
  EXPECT_EQ(Opened(maker).run({counting({4}), list({2, -1})}), "i64[2,3] 0 1 1 1 0 1");
}

TEST(onnx_edges, the_farthest_step_takes_one_size) {
  Maker maker;
  maker.input("x", 1, {"2", "3", "4"}).i64("from", {1}, {1}).i64("to", {1}, {100});
  maker.i64("axis", {1}, {0}).i64("step", {1}, {INT64_MAX});
  maker.node("Shape", {"x"}, {"dims"}).node("Slice", {"dims", "from", "to", "axis", "step"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 3, 4})}), "i64[1] 3");
}

TEST(onnx_edges, words_and_modes_that_nobody_knows_are_refused) {
  auto code = [](const Maker& maker) { return maker.import().status().code(); };
  Maker lstm(14), resize(19), crop(19), scatter(24);
  lstm.input("x", 1, {"1", "1", "1"}).f32("w", {1, 1, 1}, {1}).f32("r", {1, 1, 1}, {1});
  lstm.node("RNN", {"x", "w", "r"}, {"y"}, {Maker::attr("direction", "sideways")}).output("y");
  EXPECT_EQ(code(lstm), Code::kData);
  resize.input("x", 1, {"1", "2"}).i64("s", {2}, {1, 4});
  resize.node("Resize", {"x", "", "", "s"}, {"y"}, {Maker::attr("keep_aspect_ratio_policy", "shrink")}).output("y");
  EXPECT_EQ(code(resize), Code::kData);
  crop.input("x", 1, {"1", "2"}).f32("roi", {4}, {0, 0, 1, 1}).i64("s", {2}, {1, 4});
  crop.node("Resize", {"x", "roi", "", "s"}, {"y"},
            {Maker::attr("mode", "linear"), Maker::attr("antialias", 1),
             Maker::attr("coordinate_transformation_mode", "tf_crop_and_resize")});
  EXPECT_EQ(code(crop.output("y")), Code::kUnsupported);
  scatter.input("x", 1, {"1", "4", "2"}).input("u", 1, {"1", "1", "2"});
  scatter.node("TensorScatter", {"x", "u"}, {"y"}, {Maker::attr("mode", "spiral")}).output("y");
  EXPECT_EQ(code(scatter), Code::kData);
  Maker pad(13);  // in the run
  pad.input("x", 1, {"n"}).input("p", 7, {"2"}).node("Pad", {"x", "p"}, {"y"}, {Maker::attr("mode", "mirror")});
  EXPECT_EQ(code(pad.output("y")), Code::kData);
}

TEST(onnx_edges, the_first_gradient_counts_whole) {
  Maker maker(13);
  maker.f32("r", {}, {0.5F}).input("t", 7, {}).input("x", 1, {"2"}).f32("g", {2}, {2, 4}).f32("v", {2}, {0, 2});
  maker.node("Momentum", {"r", "t", "x", "g", "v"}, {"y"},
             {Maker::attr("alpha", 1.0F), Maker::attr("beta", 0.5F), Maker::attr("mode", "standard"),
              Maker::attr("norm_coefficient", 0.0F)},
             "ai.onnx.preview.training");
  Opened opened(maker.output("y"));
  EXPECT_EQ(opened.run({*list({0}).reshaped({}), counting({2})}), "f32[2] -1 -2");
  EXPECT_EQ(opened.run({*list({3}).reshaped({}), counting({2})}), "f32[2] 0 -1");
}

// It says which memory a runtime may use again.
TEST(onnx_edges, consumed_inputs_of_the_first_opsets_have_no_meaning) {
  Maker maker(1);
  maker.input("x", 1, {"2"}).node("Relu", {"x"}, {"y"}, {Maker::attr("consumed_inputs", std::vector<int64_t>{0})});
  EXPECT_EQ(Opened(maker.output("y")).run({counting({2})}), "f32[2] 0 1");
}

TEST(onnx_edges, an_empty_axis_is_padded_in_the_run) {
  Maker maker;
  maker.input("x", 1, {"n"}).input("p", 7, {"2"}).node("Pad", {"x", "p"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({0}), list({1, 2})}), "f32[3] 0 0 0");
}

// The first axis fails, and there are more of them.
TEST(onnx_edges, a_pad_of_the_run_with_many_values_is_refused) {
  Maker maker;
  maker.input("x", 1, {"1", "3"}).input("p", 7, {"4"}).input("v", 1, {"2"});
  maker.node("Pad", {"x", "p", "v"}, {"y"}).output("y");
  EXPECT_FALSE(maker.import().ok());
}

// A file that names its outputs is as long as the list of their sizes.
TEST(onnx_edges, a_split_may_have_thousands_of_pieces) {
  constexpr int64_t kPieces = 5000;
  std::vector<std::string> pieces;
  for (int64_t i = 0; i < kPieces; i++) pieces.push_back(format("p{}", i));
  Maker maker;
  maker.input("x", 1, {"5000"}).i64("sizes", {kPieces}, std::vector<int64_t>(kPieces, 1));
  maker.node("Split", {"x", "sizes"}, pieces).node("Sub", {"p4999", "p2"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({kPieces})}), "f32[1] 4997");
}

TEST(onnx_edges, a_list_that_is_too_long_is_named) {
  constexpr int64_t kMany = 65537;
  Maker maker;
  maker.input("x", 1, {"2"}).i64("sizes", {kMany}, std::vector<int64_t>(kMany, 1));
  maker.node("Split", {"x", "sizes"}, {"y", "z"}).output("y");
  std::string why = Opened(maker).run({});
  EXPECT_NE(why.find("'split' has 65537 numbers, more than 65536"), std::string::npos) << why;
}

// The size must not double with each crop, nor the time grow exponentially with their number.
TEST(onnx_edges, an_open_axis_may_be_cropped_many_times) {
  constexpr int kTimes = 12;
  Maker maker;
  maker.input("x0", 1, {"n"}).i64("one", {1}, {1}).i64("last", {1}, {-1});
  for (int i = 0; i < kTimes; i++) maker.node("Slice", {format("x{}", i), "one", "last"}, {format("x{}", i + 1)});
  maker.output("x12");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({26})}), "f32[2] 12 13");
  EXPECT_EQ(opened.run({counting({5})}), "f32[0]");
}

// The guard of the pieces, 1 + max(0, n - 1) = n, determines the start of the slice, also inside a quotient.
TEST(onnx_edges, a_guard_of_pieces_says_where_a_slice_begins) {
  Maker maker;
  maker.input("x", 1, {"n"}).i64("last", {1}, {-1}).i64("front", {1}, {INT32_MIN}).i64("zero", {1}, {0});
  maker.i64("back", {1}, {-2}).i64("one", {1}, {1}).node("Slice", {"x", "last", "front", "zero", "back"}, {"even"});
  maker.node("Shape", {"x"}, {"n"}).node("Sub", {"n", "one"}, {"rest"});
  maker.node("Concat", {"one", "rest"}, {"pieces"}, {Maker::attr("axis", int64_t{0})});
  maker.node("Split", {"x", "pieces"}, {"first", "others"})
      .node("Concat", {"first", "even"}, {"y"}, {Maker::attr("axis", int64_t{0})});
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({counting({5})}), "f32[4] 0 4 2 0");
  EXPECT_EQ(Opened(maker).run({counting({1})}), "f32[2] 0 0");
}

// The guard of the arg-max, 1 <= m, proves that the start, max(0, m - 1), is within the axis. The length keeps its
// form.
TEST(onnx_edges, a_slice_backwards_keeps_its_length_when_a_guard_is_known) {
  Maker maker(13);
  maker.input("x", 1, {"m"}).i64("from", {1}, {-1}).i64("to", {1}, {1}).i64("axis", {1}, {0}).i64("step", {1}, {-2});
  maker.node("Slice", {"x", "from", "to", "axis", "step"}, {"part"});
  maker.node("ArgMin", {"x"}, {"least"}, {Maker::attr("keepdims", 0)});
  maker.node("Cast", {"least"}, {"place"}, {Maker::attr("to", 1)}).node("Add", {"part", "place"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({6})}), "f32[2] 5 3");
  EXPECT_EQ(opened.run({counting({1})}), "f32[0]");
}

TEST(onnx_edges, numbers_beyond_every_size_are_not_computed_as_sizes) {
  Maker maker(13);
  maker.input("x", 1, {"m"}).i64("most", {1}, {INT64_MAX}).node("Shape", {"x"}, {"m"});
  maker.node("Concat", {"m", "most"}, {"both"}, {Maker::attr("axis", 0)}).node("ReduceMax", {"both"}, {"largest"});
  maker.node("Equal", {"largest", "most"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "bool[1] 1");
}

// Nothing but a guard of the body needs the size that the run finds. The node that finds it stays.
TEST(onnx_edges, a_guard_of_a_branch_may_need_a_size_of_the_run) {
  Maker yes, no, maker(13);
  yes.node("Identity", {"two"}, {"a"}).output("a");
  no.node("Shape", {"counted"}, {"n"}).node("Reshape", {"two", "n"}, {"unused"});
  no.node("Identity", {"two"}, {"b"}).output("b");
  maker.input("p", 9, {}).input("last", 7, {}).i64("zero", {}, {0}).i64("one", {}, {1}).i64("two", {2}, {7, 8});
  maker.node("Range", {"zero", "last", "one"}, {"counted"});
  maker.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", yes), Maker::attr("else_branch", no)}).output("y");
  Opened opened(maker);
  Tensor p = *Tensor::create(DType::kBool, std::span<const int64_t>());
  Tensor last = *Tensor::create(DType::kI64, std::span<const int64_t>());
  *p.as<uint8_t>() = 0, *last.as<int64_t>() = 2;
  EXPECT_EQ(opened.run({p, last}), "i64[2] 7 8");
}

// The guard of the split comes after the slice, and shortens the size of the slice, whose start is max(0, k - 1).
TEST(onnx_edges, a_guard_shortens_what_an_earlier_slice_kept_long) {
  Maker maker(13);
  maker.input("x", 1, {"k"}).i64("last", {1}, {-1}).i64("far", {1}, {-2}).i64("axis", {1}, {0}).i64("one", {1}, {1});
  maker.node("Slice", {"x", "last", "far", "axis", "far"}, {"y"}).node("Shape", {"x"}, {"k"});
  maker.node("Sub", {"k", "one"}, {"rest"}).node("Concat", {"one", "rest"}, {"parts"}, {Maker::attr("axis", 0)});
  maker.node("Split", {"x", "parts"}, {"first", "others"}).node("Shape", {"others"}, {"unused"});
  maker.node("Add", {"y", "first"}, {"z"}).output("z").output("others");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "f32[1] 2");
}

TEST(onnx_edges, a_bound_that_sizes_never_reach_is_no_part_of_a_size) {
  Maker maker(13);
  maker.input("x", 1, {"k"}).i64("last", {1}, {-1}).i64("far", {1}, {INT32_MIN}).i64("axis", {1}, {0});
  maker.i64("back", {1}, {-2}).i64("step", {1}, {-1});
  maker.node("Slice", {"x", "last", "far", "axis", "back"}, {"y"}).output("y");
  auto imported = maker.import();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const Graph& graph = imported->graph;
  EXPECT_EQ(text_of(graph.type(graph.outputs()[0].value)), "f32[((k + 1)/2)]");
}

std::string scaled_norm(const char* op, const std::vector<int64_t>& dims, const std::vector<float>& scale) {
  Maker maker(23);
  maker.input("x", 1, {"2", "2"}).f32("scale", dims, scale).node(op, {"x", "scale"}, {"y"}).output("y");
  return Opened(maker).run({counting({2, 2})});
}

// A number for each row is none of an element of a row.
TEST(onnx_edges, the_scale_of_a_norm_broadcasts) {
  EXPECT_EQ(scaled_norm("LayerNormalization", {1}, {2}), scaled_norm("LayerNormalization", {2}, {2, 2}));
  EXPECT_EQ(scaled_norm("LayerNormalization", {}, {2}), scaled_norm("LayerNormalization", {2}, {2, 2}));
  EXPECT_EQ(scaled_norm("LayerNormalization", {2, 1}, {2, 4}), "f32[2,2] -1 1 -3 3");
  EXPECT_EQ(scaled_norm("RMSNormalization", {1, 1, 1}, {2}), scaled_norm("RMSNormalization", {2}, {2, 2}));
  EXPECT_EQ(scaled_norm("RMSNormalization", {2, 1}, {2, 4}), "f32[2,2] 0 2 3 4");
  EXPECT_EQ(scaled_norm("SimplifiedLayerNormalization", {2, 1}, {2, 4}), "f32[2,2] 0 2 3 4");
}

TEST(onnx_edges, a_product_of_integers_takes_vectors) {
  Maker maker;
  maker.input("a", 2, {"k"}).input("b", 2, {"k"}).node("MatMulInteger", {"a", "b"}, {"y"}).output("y");
  EXPECT_TRUE(maker.import().ok());
}

TEST(onnx_edges, a_beta_of_0_takes_no_part_of_c) {
  Maker maker;
  maker.input("a", 1, {"n", "2"}).f32("b", {2, 1}, {1, 1}).f32("c", {1}, {std::numeric_limits<float>::quiet_NaN()});
  maker.node("Gemm", {"a", "b", "c"}, {"y"}, {Maker::attr("beta", 0.F)}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 2})}), "f32[2,1] 1 5");
}

TEST(onnx_edges, a_scalar_is_a_row_of_one_element) {
  Maker maker;
  maker.input("x", 1, {}).node("Softmax", {"x"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({})}), "f32[] 1");
}

TEST(onnx_edges, prelu_takes_integers) {
  Maker maker(16);
  maker.input("x", 1, {"n"})
      .i64("one", {}, {1})
      .i64("slope", {}, {3})
      .node("Cast", {"x"}, {"i"}, {Maker::attr("to", 7)});
  maker.node("Sub", {"i", "one"}, {"from"}).node("PRelu", {"from", "slope"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "i64[3] -3 0 1");
}

TEST(onnx_edges, a_wrap_shows_nothing_that_negative_pads_take_away) {
  Maker maker(19);
  maker.input("x", 1, {"4"}).i64("pads", {2}, {-1, 2});
  maker.node("Pad", {"x", "pads"}, {"y"}, {Maker::attr("mode", "wrap")}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({4})}), "f32[5] 1 2 3 1 2");
}

TEST(onnx_edges, heads_that_do_not_divide_a_width_are_told) {
  Maker maker(17);
  maker.input("q", 1, {"b", "s", "32"}).imports("com.microsoft", 1);
  maker.node("MultiHeadAttention", {"q", "q", "q"}, {"y"}, {Maker::attr("num_heads", 3)}, "com.microsoft").output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 1, 32})}),
            "ONNX node 'y' (MultiHeadAttention of com.microsoft, opset 1): a width of 32 is not one of 3 heads");
}

}  // namespace rlx
