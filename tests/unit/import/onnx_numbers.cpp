// SPDX-License-Identifier: Apache-2.0
// Numbers that decide a graph and that only sizes or the run tell: scales, thresholds, conditions. And kinds of
// ai.onnx.ml.
#include "opened.h"

namespace rlx {

using onnx::Maker;

static Tensor floats(std::initializer_list<int64_t> dims, std::initializer_list<float> values) {
  Tensor tensor = *Tensor::create(DType::kF32, std::span<const int64_t>(dims.begin(), dims.size()));
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

static Message reals(const char* name, std::initializer_list<float> values) {
  Message attribute = Message().text(1, name).number(20, 6);
  for (float value : values) attribute.f32(7, value);
  return attribute;
}

static Message texts(const char* name, std::initializer_list<const char*> values) {
  Message attribute = Message().text(1, name).number(20, 8);
  for (const char* value : values) attribute.text(9, value);
  return attribute;
}

// ---- integers ----

TEST(onnx_numbers, integers_of_a_file_wrap_as_their_dtype_does) {
  constexpr int kU8 = 2, kU64 = 13;
  Maker maker(25);
  maker.i64("numbers", {3}, {-1, 0, 5}).i64("zero", {1}, {0}).i64("most", {1}, {200});
  maker.node("Cast", {"numbers"}, {"large"}, {Maker::attr("to", kU64)});
  maker.node("Cast", {"zero"}, {"none"}, {Maker::attr("to", kU64)}).node("Less", {"large", "none"}, {"is_less"});
  maker.node("Cast", {"most"}, {"byte"}, {Maker::attr("to", kU8)}).node("Add", {"byte", "byte"}, {"sum"});
  maker.node("Less", {"sum", "byte"}, {"is_wrapped"});
  maker.node("Concat", {"is_less", "is_wrapped"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  EXPECT_EQ(Opened(maker).run({}), "bool[4] 0 0 0 1");
}

TEST(onnx_numbers, kinds_of_floats_that_also_take_integers) {
  Maker maker(20);
  maker.input("x", 7, {"n"});
  maker.node("Shrink", {"x"}, {"shrunk"}, {Maker::attr("lambd", 1.5f), Maker::attr("bias", 0.5f)});
  maker.node("Erf", {"x"}, {"erf"}).node("Concat", {"shrunk", "erf"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  EXPECT_EQ(Opened(maker).run({list({-8, 1, 3})}), "i64[6] -7 0 2 -1 0 0");
}

TEST(onnx_numbers, what_is_no_number_in_eight_bits) {
  constexpr int kF8E5M2 = 19;
  Maker maker(20);
  maker.f32("x", {3}, {INFINITY, NAN, 1})
      .node("Cast", {"x"}, {"byte"}, {Maker::attr("to", kF8E5M2), Maker::attr("saturate", 0)});
  maker.node("IsInf", {"byte"}, {"inf"}).node("IsNaN", {"byte"}, {"nan"});
  maker.node("Concat", {"inf", "nan"}, {"y"}, {Maker::attr("axis", 0)}).output("y");
  EXPECT_EQ(Opened(maker).run({}), "bool[6] 1 0 0 0 1 0");
}

TEST(onnx_numbers, a_sum_of_products_has_the_dtype_of_its_factors) {
  constexpr int kU8 = 2, kI64 = 7;
  Maker maker(12);
  maker.input("x", kI64, {"n"}).node("Cast", {"x"}, {"u"}, {Maker::attr("to", kU8)});
  maker.node("Einsum", {"u", "u", "u"}, {"y"}, {Maker::attr("equation", "i,i,i->")}).output("y");
  EXPECT_EQ(Opened(maker).run({list({2, 5})}), "u8[] 133");
  EXPECT_EQ(Opened(maker).run({list({7, 1})}), "u8[] 88");  // 344
}

TEST(onnx_numbers, a_determinant_of_halves) {
  Maker maker(13);
  maker.input("x", 1, {"2", "2"}).node("Cast", {"x"}, {"h"}, {Maker::attr("to", 10)});
  maker.node("Det", {"h"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 2})}), "f16[] -2");
}

TEST(onnx_numbers, a_quantised_product_of_a_vector) {
  constexpr int kU8 = 2;
  Maker maker(10);
  maker.input("x", 7, {"n"}).i64("w", {2, 3}, {1, 2, 3, 4, 5, 6}).i64("none", {}, {0}).i64("seven", {}, {7});
  maker.f32("half", {}, {0.5f}).f32("one", {}, {1});
  for (const char* name : {"x", "w", "none", "seven"})
    maker.node("Cast", {name}, {std::string("u.") + name}, {Maker::attr("to", kU8)});
  maker.node("QLinearMatMul", {"u.x", "half", "u.none", "u.w", "one", "u.none", "one", "u.seven"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({list({2, 4})}), "u8[3] 16 19 22");
}

TEST(onnx_numbers, columns_of_features_may_be_a_symbol) {
  Maker maker(13);
  maker.input("x", 1, {"n", "m"});
  maker.node("FeatureVectorizer", {"x", "x"}, {"y"}, {Maker::attr("inputdimensions", std::vector<int64_t>{2, 2})},
             "ai.onnx.ml");
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 2})}), "f32[1,4] 0 1 0 1");
  EXPECT_NE(Opened(maker).run({counting({1, 3})}).find("does not hold"), std::string::npos);
}

// ---- Resize ----

// What is outside of a crop of integers is rounded towards 0.
TEST(onnx_numbers, a_crop_of_integers_is_extrapolated_by_an_integer) {
  Maker maker(13);
  maker.input("x", 7, {"2"}).f32("roi", {2}, {0, 2}).f32("scale", {1}, {1.5f});
  maker.node("Cast", {"x"}, {"u"}, {Maker::attr("to", 2)});
  maker.node(
      "Resize", {"u", "roi", "scale"}, {"y"},
      {Maker::attr("coordinate_transformation_mode", "tf_crop_and_resize"), Maker::attr("extrapolation_value", 7.5f)});
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({list({3, 5})}), "u8[3] 3 5 7");
}

// Before opset 11 there is no mode of rounding.
TEST(onnx_numbers, an_old_image_shrinks_to_the_elements_that_come_next) {
  Maker maker(10);
  maker.input("x", 1, {"2", "4"}).f32("scales", {2}, {1.5f, 0.6f});
  maker.node("Resize", {"x", "scales"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 4})}), "f32[3,2] 0 2 0 2 4 6");
}

// The formula would move elements by a half along an axis that keeps its size.
TEST(onnx_numbers, an_axis_that_keeps_its_size_is_left_alone) {
  for (bool by_sizes : {false, true}) {
    Maker maker(11);
    maker.input("x", 1, {"2", "2"}).f32("none", {0}, {}).f32("scales", {2}, {1, 2}).i64("sizes", {2}, {2, 4});
    std::vector<std::string> in{"x", "none", by_sizes ? "none" : "scales"};
    if (by_sizes) in.push_back("sizes");
    maker.node("Resize", in, {"y"},
               {Maker::attr("mode", "linear"), Maker::attr("coordinate_transformation_mode", "tf_half_pixel_for_nn")});
    maker.output("y");
    Tensor x = counting({2, 2});
    for (int64_t i = 0; i < 4; i++) x.as<float>()[i] *= 4;
    EXPECT_EQ(Opened(maker).run({x}), "f32[2,4] 1 3 4 4 9 11 12 12");
  }
}

// Writers of older files say the size that they want as a scale: the size over that of the input.
TEST(onnx_numbers, a_scale_may_be_a_size_over_a_size) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).f32("wanted", {1}, {6}).node("Shape", {"x"}, {"shape"});
  maker.node("Cast", {"shape"}, {"real"}, {Maker::attr("to", 1)}).node("Div", {"wanted", "real"}, {"scale"});
  maker.node("Resize", {"x", "", "scale"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({3})}), "f32[6] 0 0 1 1 2 2");
  EXPECT_EQ(opened.run({counting({6})}), "f32[6] 0 1 2 3 4 5");
}

TEST(onnx_numbers, one_scale_for_sizes_that_are_not_known) {
  Maker maker(18);
  maker.input("x", 1, {"n", "m"}).i64("sizes", {2}, {4, 4});
  maker.node("Resize", {"x", "", "", "sizes"}, {"y"}, {Maker::attr("keep_aspect_ratio_policy", "not_larger")});
  maker.output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({1, 2})}), "f32[2,4] 0 0 1 1 0 0 1 1");
  EXPECT_EQ(opened.run({counting({2, 1})}), "f32[4,2] 0 0 0 0 1 1 1 1");
}

// As torch and ONNX Runtime have it. The evaluator of onnx divides by n * scale - 1, here 3.5.
TEST(onnx_numbers, corners_lie_on_corners_whatever_the_scale) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).f32("scale", {1}, {1.5f}).f32("ten", {}, {100});
  maker.node("Mul", {"x", "ten"}, {"large"});
  maker.node("Resize", {"large", "", "scale"}, {"y"},
             {Maker::attr("mode", "linear"), Maker::attr("coordinate_transformation_mode", "align_corners")});
  maker.output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({4})}), "f32[6] 0 60 120 180 240 300");
  EXPECT_EQ(opened.run({counting({3})}), "f32[4] 0 66 133 200");
}

// ---- sizes ----

TEST(onnx_numbers, a_sum_of_sizes_that_nothing_tells_apart_is_a_size) {
  Maker maker;
  maker.input("x", 1, {"past + now"}).node("Neg", {"x"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "f32[3] 0 -1 -2");
  Maker both;
  both.input("x", 1, {"past + now"}).input("z", 1, {"now"}).node("Neg", {"x"}, {"y"}).output("y");
  EXPECT_EQ(Opened(both).run({counting({3}), counting({1})}), "f32[3] 0 -1 -2");
  EXPECT_NE(Opened(both).run({counting({3}), counting({4})}).substr(0, 3), "f32");
}

// ---- boxes ----

static Maker suppression(const char* op, const char* input) {
  Maker maker(13);
  maker.input("boxes", 1, {"1", "n", "4"})
      .input("scores", 1, {"1", "1", "n"})
      .input(input, op[0] == 'M' ? 7 : 1, {"k"});
  maker.f32("half", {}, {0.5f}).i64("all", {}, {99});
  bool is_count = std::string(input) == "most";
  maker.node(is_count ? "ReduceSum" : "ReduceMean", {input}, {"number"}, {Maker::attr("keepdims", 0)});
  maker.node("NonMaxSuppression", {"boxes", "scores", is_count ? "number" : "all", "half", is_count ? "" : "number"},
             {"y"});
  return std::move(maker.output("y"));
}

TEST(onnx_numbers, how_many_boxes_are_kept_and_from_which_score_the_run_may_say) {
  Tensor boxes = floats({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}), scores = floats({1, 1, 3}, {1, 3, 2});
  Opened most(suppression("Most", "most"));
  EXPECT_EQ(most.run({boxes, scores, list({1, 1})}), "i64[2,3] 0 0 1 0 0 2");
  EXPECT_EQ(most.run({boxes, scores, list({1, -1})}), "i64[0,3]");
  Opened least(suppression("Least", "least"));
  EXPECT_EQ(least.run({boxes, scores, floats({2}, {1, 2})}), "i64[2,3] 0 0 1 0 0 2");
  EXPECT_EQ(least.run({boxes, scores, floats({2}, {9, 9})}), "i64[0,3]");
}

// A bin of 2 by 2 elements has 2 by 2 samples, in the middle of each.
TEST(onnx_numbers, boxes_have_as_many_samples_as_elements) {
  for (bool is_max : {false, true}) {
    Maker maker(16);
    maker.input("x", 1, {"1", "1", "h", "w"}).input("rois", 1, {"r", "4"}).input("images", 7, {"r"});
    maker.node(
        "RoiAlign", {"x", "rois", "images"}, {"y"},
        {Maker::attr("output_height", 1), Maker::attr("output_width", 2), Maker::attr("mode", is_max ? "max" : "avg")});
    maker.output("y");
    Opened opened(maker);
    EXPECT_EQ(opened.run({counting({1, 1, 4, 8}), floats({1, 4}, {0, 0, 4, 4}), list({0})}),
              is_max ? "f32[1,1,1,2] 25 27" : "f32[1,1,1,2] 12 14");
    EXPECT_EQ(opened.run({counting({1, 1, 4, 8}), floats({0, 4}, {}),
                          *Tensor::create(DType::kI64, std::array<int64_t, 1>{0})}),
              "f32[0,1,1,2]");
  }
}

// ---- others ----

TEST(onnx_numbers, a_root_of_an_integer) {
  Maker maker(13);
  maker.input("x", 7, {"n"}).f32("half", {}, {0.5f}).node("Pow", {"x", "half"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({list({4, 9, 10})}), "i64[3] 2 3 3");
}

TEST(onnx_numbers, statistics_may_be_doubles) {
  Maker maker(17);
  maker.input("x", 1, {"n", "2"}).f32("one", {2}, {4, 4});
  maker.node("LayerNormalization", {"x", "one"}, {"y", "mean"}, {Maker::attr("stash_type", 11)}).output("mean");
  EXPECT_EQ(Opened(maker).run({counting({1, 2})}), "f64[1,1] 0");
}

TEST(onnx_numbers, an_old_norm_of_every_element) {
  Maker maker(7);
  maker.input("x", 1, {"n", "1", "2"}).f32("scale", {1, 2}, {1, 2}).f32("bias", {1, 2}, {10, 20});
  maker.f32("mean", {1, 2}, {0, 1}).f32("var", {1, 2}, {1, 4});
  maker.node("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, {"y"},
             {Maker::attr("spatial", 0), Maker::attr("epsilon", 0.0f)});
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 1, 2})}), "f32[2,1,2] 10 20 12 22");
}

// The numbers that it has are 0, 0.5, 1, 1.5, 2, 3, 4 and 6.
TEST(onnx_numbers, float4_is_read_and_rounded) {
  Maker maker(23);
  maker.input("x", 1, {"n"}).f32("scale", {}, {0.5f});
  maker.node("QuantizeLinear", {"x", "scale"}, {"q"}, {Maker::attr("output_dtype", 23)});
  maker.node("Cast", {"q"}, {"y"}, {Maker::attr("to", 1)}).output("y");
  EXPECT_EQ(Opened(maker).run({floats({6}, {-100, -2.4f, -0.6f, 1.25f, 1.3f, 100})}), "f32[6] -6 -4 -1 2 3 6");
}

TEST(onnx_numbers, few_bits_change_their_sign) {
  for (auto [from, to] : {std::pair(22, 21), {21, 22}, {26, 25}, {25, 26}}) {  // uint4 and int4, uint2 and int2
    Maker maker(25);
    maker.input("x", 7, {"n"}).node("Cast", {"x"}, {"few"}, {Maker::attr("to", from)});
    maker.node("Cast", {"few"}, {"other"}, {Maker::attr("to", to)})
        .node("Cast", {"other"}, {"y"}, {Maker::attr("to", 7)});
    maker.output("y");
    bool is_signed = to == 22 || to == 26;
    int64_t top = from < 25 ? 15 : 3;
    EXPECT_EQ(Opened(maker).run({list({1, top})}), format("i64[2] 1 {}", is_signed ? -1 : top)) << from << " to " << to;
  }
}

// ---- ai.onnx.ml ----

TEST(onnx_numbers, labels_are_found_in_a_table) {
  Maker maker(13);
  maker.input("x", 7, {"n"});
  maker.node("LabelEncoder", {"x"}, {"y"},
             {Maker::attr("keys_int64s", std::vector<int64_t>{30, 10, 20}),
              Maker::attr("values_int64s", std::vector<int64_t>{3, 1, 2}), Maker::attr("default_int64", -7)},
             "ai.onnx.ml");
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({list({10, 11, 30, 20, 99, -5})}), "i64[6] 1 -7 3 2 -7 -7");
}

// Feature 0 up to 1, then feature 1 above 5.
TEST(onnx_numbers, a_tree_is_walked_to_its_leaves) {
  Maker maker(13);
  maker.input("x", 1, {"n", "2"});
  auto list_of = [](const char* name, std::vector<int64_t> values) { return Maker::attr(name, values); };
  maker.node(
      "TreeEnsembleRegressor", {"x"}, {"y"},
      {list_of("nodes_treeids", {0, 0, 0, 0, 0}), list_of("nodes_nodeids", {0, 1, 2, 3, 4}),
       list_of("nodes_featureids", {0, 0, 1, 0, 0}), reals("nodes_values", {1, 0, 5, 0, 0}),
       texts("nodes_modes", {"BRANCH_LEQ", "LEAF", "BRANCH_GT", "LEAF", "LEAF"}),
       list_of("nodes_truenodeids", {1, 0, 3, 0, 0}), list_of("nodes_falsenodeids", {2, 0, 4, 0, 0}),
       list_of("target_treeids", {0, 0, 0}), list_of("target_nodeids", {1, 3, 4}), list_of("target_ids", {0, 0, 0}),
       reals("target_weights", {10, 20, 30}), reals("base_values", {1}), Maker::attr("n_targets", 1)},
      "ai.onnx.ml");
  maker.output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({floats({3, 2}, {1, 9, 2, 9, 2, 5})}), "f32[3,1] 11 21 31");
}

// As ONNX Runtime has it: a probability of 0.4 is not enough, though it is more than the 0 of a label without votes.
TEST(onnx_numbers, trees_may_vote_for_one_of_two_labels) {
  for (int64_t named : {0, 1}) {
    Maker maker(17);
    maker.input("x", 1, {"n", "1"});
    auto list_of = [](const char* name, std::vector<int64_t> values) { return Maker::attr(name, values); };
    maker.node("TreeEnsembleClassifier", {"x"}, {"y", "scores"},
               {list_of("nodes_treeids", {0, 0, 0}), list_of("nodes_nodeids", {0, 1, 2}),
                list_of("nodes_featureids", {0, 0, 0}), reals("nodes_values", {0, 0, 0}),
                texts("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}), list_of("nodes_truenodeids", {1, 0, 0}),
                list_of("nodes_falsenodeids", {2, 0, 0}), list_of("class_treeids", {0, 0}),
                list_of("class_nodeids", {1, 2}), list_of("class_ids", {named, named}),
                reals("class_weights", {0.4f, 0.6f}), list_of("classlabels_int64s", {7, 8})},
               "ai.onnx.ml");
    EXPECT_EQ(Opened(maker.output("y")).run({floats({2, 1}, {-1, 1})}), "i64[2] 7 8");
  }
}

TEST(onnx_numbers, a_list_is_normalised_as_a_list) {
  Maker maker(17);
  maker.input("x", 1, {"n"}).node("Normalizer", {"x"}, {"y"}, {Maker::attr("norm", "MAX")}, "ai.onnx.ml").output("y");
  EXPECT_EQ(Opened(maker).run({floats({2}, {2, -4})}), "f32[2] 1 -2");
}

TEST(onnx_numbers, a_periodic_window_of_one_element_follows_the_formula) {
  auto window = [](int64_t periodic) {
    Maker maker(17);
    maker.i64("size", {}, {1}).node("HannWindow", {"size"}, {"y"}, {Maker::attr("periodic", periodic)}).output("y");
    return Opened(maker).run({});
  };
  EXPECT_EQ(window(1), "f32[1] 0");
  EXPECT_EQ(window(0), "f32[1] 1");
}

// The default of the schema is that of two directions.
TEST(onnx_numbers, one_direction_takes_the_activations_of_two) {
  Message activations = Message().text(1, "activations").text(9, "Relu").text(9, "Tanh").number(20, 8);
  Maker maker(14);
  maker.input("x", 1, {"1", "1", "1"}).f32("w", {1, 1, 1}, {2}).f32("r", {1, 1, 1}, {1});
  maker.node("RNN", {"x", "w", "r"}, {"y"}, {activations, Maker::attr("hidden_size", 1)}).output("y");
  Tensor x = counting({1, 1, 1});
  x.as<float>()[0] = 4;
  EXPECT_EQ(Opened(maker).run({x}), "f32[1,1,1,1] 8");
}

}  // namespace rlx
