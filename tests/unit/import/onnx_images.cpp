// SPDX-License-Identifier: Apache-2.0
// Windows, images and boxes: pads, sizes and scales that files give in several ways, and results at their edges.
#include "opened.h"

namespace rlx {

using onnx::Maker;

static std::string type_of(const Result<Imported>& imported, size_t output = 0) {
  if (!imported.ok()) return std::string(imported.status().message());
  return text_of(imported->graph.type(imported->graph.outputs().at(output).value));
}

// ---- windows ----

static Maker transposed(std::vector<std::string> dims, std::vector<Message> attributes) {
  Maker model(13);
  model.input("x", 1, std::move(dims)).f32("w", {1, 1, 3}, {1, 2, 3});
  model.node("ConvTranspose", {"x", "w"}, {"y"}, std::move(attributes)).output("y");
  return model;
}

TEST(onnx_images, a_transposed_convolution_has_the_size_that_it_is_told) {
  EXPECT_EQ(type_of(transposed({"1", "1", "4"},
                               {Maker::attr("strides", std::vector<int64_t>{2}), Maker::attr("auto_pad", "SAME_UPPER")})
                        .import()),
            "f32[1,1,8]");
  EXPECT_EQ(type_of(transposed({"1", "1", "4"}, {Maker::attr("strides", std::vector<int64_t>{2}),
                                                 Maker::attr("output_shape", std::vector<int64_t>{10})})
                        .import()),
            "f32[1,1,10]");
  auto wrong = transposed({"1", "1", "4"}, {Maker::attr("output_shape", std::vector<int64_t>{10, 10})}).import();
  EXPECT_EQ(wrong.status().code(), Code::kShape);
}

TEST(onnx_images, pools_round_up_inside_each_other) {
  Maker maker;
  auto pool = [&](const char* from, const char* to) {
    maker.node("MaxPool", {from}, {to},
               {Maker::attr("kernel_shape", std::vector<int64_t>{2}), Maker::attr("strides", std::vector<int64_t>{2}),
                Maker::attr("ceil_mode", 1)});
  };
  maker.input("x", 1, {"1", "1", "n"});
  pool("x", "a");
  pool("a", "b");
  pool("b", "y");
  maker.output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({1, 1, 9})}), "f32[1,1,2] 7 8");
  EXPECT_EQ(opened.run({counting({1, 1, 16})}), "f32[1,1,2] 7 15");
}

TEST(onnx_images, a_window_may_be_far_larger_than_the_image) {
  constexpr int64_t kHuge = int64_t{1} << 40, kFar = int64_t{1} << 48;
  Maker pool, conv;
  pool.input("x", 1, {"1", "1", "2", "2", "2"});
  pool.node("MaxPool", {"x"}, {"y"},
            {Maker::attr("kernel_shape", std::vector<int64_t>{kHuge, 2, 2}), Maker::attr("auto_pad", "SAME_UPPER")});
  pool.output("y");
  EXPECT_EQ(Opened(pool).run({counting({1, 1, 2, 2, 2})}), "f32[1,1,2,2,2] 7 7 7 7 7 7 7 7");
  conv.input("x", 1, {"1", "1", "2"}).f32("w", {1, 1, 2}, {1, 1});
  conv.node("Conv", {"x", "w"}, {"y"},
            {Maker::attr("dilations", std::vector<int64_t>{kFar}), Maker::attr("pads", std::vector<int64_t>{0, kFar})});
  conv.output("y");
  EXPECT_EQ(Opened(conv).run({counting({1, 1, 2})}), "f32[1,1,2] 0 1");
}

TEST(onnx_images, elements_may_be_spread_far_beyond_the_result) {
  constexpr int64_t kFar = int64_t{1} << 40;
  Maker maker;
  maker.input("x", 1, {"1", "1", "2", "2"}).f32("w", {1, 1, 1, 1}, {3});
  maker.node("ConvTranspose", {"x", "w"}, {"y"},
             {Maker::attr("strides", std::vector<int64_t>{kFar, kFar}),
              Maker::attr("pads", std::vector<int64_t>{0, kFar, kFar - 1, 0})});
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 1, 2, 2})}), "f32[1,1,2,1] 3 0");
}

// (n - 1) zeros stand between n elements, and none where there are none: the result is as long as two kernels reach.
TEST(onnx_images, the_transposed_convolution_of_nothing_is_0) {
  Maker maker(13);
  maker.input("x", 1, {"1", "1", "n"}).f32("w", {1, 1, 3}, {1, 1, 1});
  maker.node("ConvTranspose", {"x", "w"}, {"y"}, {Maker::attr("strides", std::vector<int64_t>{2})}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 1, 0})}), "f32[1,1,2] 0 0");
  EXPECT_EQ(Opened(maker).run({counting({1, 1, 2})}), "f32[1,1,5] 0 0 1 1 1");
}

// ---- Resize ----

TEST(onnx_images, a_scale_is_the_fraction_that_it_was_written_for) {
  for (auto [scale, type] : {std::pair(2.0f, "f32[1,c,2*h]"), std::pair(0.7f, "f32[1,c,((7*h)/10)]")}) {
    Maker model(13);
    model.input("x", 1, {"1", "c", "h"}).f32("scales", {3}, {1, 1, scale});
    model.node("Resize", {"x", "", "scales"}, {"y"}).output("y");
    EXPECT_EQ(type_of(model.import()), type);
  }
}

// Of ONNX Runtime: the size times the scale in f32, rounded down. The scale 1.3f is less than 1.3, and 10 * 1.3f is 13;
// 49 * (1 / 49) is 1. No simple fraction is near 0.7071068.
TEST(onnx_images, a_size_by_a_scale_is_the_product_in_f32) {
  struct Case {
    float scale;
    int64_t from, to;
  };
  const Case cases[] = {
      {1.3f, 10, 13},      {1.3f, 80, 104},          {1.3f, 90, 116},          {1.3f, 100, 130},   {0.7f, 10, 7},
      {0.7071068f, 10, 7}, {0.7071068f, 6148, 4347}, {0.7071068f, 6149, 4348}, {1 / 49.0f, 49, 1}, {0.709f, 1000, 709},
  };
  for (const Case& it : cases)
    for (const std::string& size : {std::to_string(it.from), std::string("n")})
      for (int64_t opset : {9, 10, 13}) {
        bool is_old = opset == 9;
        Maker maker(opset);
        maker.input("x", 1, {size}).f32("scales", {1}, {it.scale});
        maker.node(is_old ? "Upsample" : "Resize",
                   opset < 11 ? std::vector<std::string>{"x", "scales"} : std::vector<std::string>{"x", "", "scales"},
                   {"y"});
        std::string y = Opened(maker.output("y")).run({counting({it.from})});
        EXPECT_EQ(y.substr(0, y.find(' ')), format("f32[{}]", it.to)) << it.scale << ", " << size << ", " << opset;
      }
}

TEST(onnx_images, an_open_size_by_a_scale_is_one_expression) {
  Maker model(13);
  model.input("x", 1, {"n"}).f32("scales", {1}, {0.7071068f}).node("Resize", {"x", "", "scales"}, {"y"}).output("y");
  auto imported = model.import();
  EXPECT_EQ(type_of(imported), "f32[((2965821*n)/4194304)]");
  ASSERT_EQ(imported->graph.guards().size(), 1u);
  EXPECT_EQ(imported->graph.guards()[0].b, Dim(6148)) << "6149 * 0.7071068f is 4348 in f32 and less than that";
}

TEST(onnx_images, an_open_size_by_a_scale_is_the_product_in_f32_for_every_size) {
  for (float scale : {1.3f, 0.7f, 1 / 49.0f, 0.709f, 0.62402058f, 2.6f, 0x1.fffffep0f, 60.9f}) {
    Maker model(13);
    model.input("x", 1, {"n"}).f32("scales", {1}, {scale}).node("Resize", {"x", "", "scales"}, {"y"}).output("y");
    auto imported = model.import();
    ASSERT_TRUE(imported.ok()) << imported.status().message();
    const Graph& graph = imported->graph;
    const Dim& size = graph.type(graph.outputs()[0].value).dims[0];
    int64_t last = graph.guards().empty() ? 10000 : graph.guards()[0].b.literal();
    EXPECT_GE(last, 4096) << scale;
    for (int64_t n = 0; n <= last; n++)
      ASSERT_EQ(*evaluate(size, [&](std::string_view) { return n; }),
                static_cast<int64_t>(static_cast<float>(n) * scale))
          << n << " * " << scale;
  }
}

// No special model is made within a body.
TEST(onnx_images, an_image_that_grows_in_a_loop) {
  Maker maker(13), body(13);
  body.input("i", 7, {}).input("go", 9, {}).input("small", 1, {"k"}).f32("scales", {1}, {1.3f});
  body.node("Resize", {"small", "", "scales"}, {"large"}).node("Identity", {"go"}, {"on"}).output("on").output("large");
  maker.input("x", 1, {"n"}).i64("trips", {}, {2});
  maker.node("Loop", {"trips", "", "x"}, {"y"}, {Maker::attr("body", body)}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({90})}).substr(0, 8), "f32[150]");
}

// An image by another one of the size that the file means.
TEST(onnx_images, a_size_by_a_scale_is_that_of_another_input) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).input("z", 1, {"m"}).f32("scales", {1}, {1.3f});
  maker.node("Resize", {"x", "", "scales"}, {"large"}).node("Add", {"large", "z"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({90}), counting({116})}).substr(0, 8), "f32[116]");
  EXPECT_EQ(opened.run({counting({10}), counting({13})}).substr(0, 7), "f32[13]");
}

TEST(onnx_images, scales_that_are_no_sizes_are_refused) {
  for (float scale : {0.0f, -1.0f}) {
    Maker model(13);
    model.input("x", 1, {"1", "c", "h"}).f32("scales", {3}, {1, 1, scale});
    model.node("Resize", {"x", "", "scales"}, {"y"}).output("y");
    EXPECT_EQ(model.import().status().code(), Code::kData);
  }
}

TEST(onnx_images, an_image_is_resized_to_sizes_of_the_run) {
  Maker maker;
  maker.input("x", 1, {"1", "1", "2"}).input("s", 7, {"3"}).node("Resize", {"x", "", "", "s"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({1, 1, 2}), list({1, 1, 4})}), "f32[1,1,4] 0 0 1 1");
}

// The scale is a size that `shape` decides and a number that `by` says: both are constants of a special graph.
TEST(onnx_images, a_scale_may_follow_from_a_size_that_an_input_decides) {
  Maker maker;
  maker.input("x", 1, {"1"}).input("shape", 7, {"1"}).input("by", 1, {"1"}).input("y", 1, {"2"});
  maker.node("Expand", {"x", "shape"}, {"wide"}).node("Shape", {"wide"}, {"size"});
  maker.node("Cast", {"size"}, {"real"}, {Maker::attr("to", int64_t{1})}).node("Add", {"real", "by"}, {"scales"});
  maker.node("Resize", {"y", "", "scales"}, {"z"}).output("z");
  EXPECT_EQ(Opened(maker).run({counting({1}), list({4}), counting({1}), counting({2})}), "f32[8] 0 0 0 0 1 1 1 1");
}

TEST(onnx_images, nothing_is_sampled_of_an_empty_axis) {
  for (const char* mode : {"nearest", "linear"}) {
    Maker maker(13);
    maker.input("x", 1, {"h"}).i64("sizes", {1}, {4});
    maker.node("Resize", {"x", "", "", "sizes"}, {"y"}, {Maker::attr("mode", mode)}).output("y");
    Opened opened(maker);
    EXPECT_EQ(opened.run({counting({1})}), "f32[4] 0 0 0 0");
    EXPECT_NE(opened.run({counting({0})}).find("does not hold"), std::string::npos) << opened.run({counting({0})});
  }
}

// 5.5 * 15 / 11 is 7.5 and 3 * 7 / 3 is 7: neither may be off by the rounding of the scale.
TEST(onnx_images, an_exact_coordinate_is_its_own_nearest) {
  struct Case {
    int64_t from, to;
    const char *coord, *rule, *y;
  };
  const Case cases[] = {
      {15, 11, "half_pixel", "ceil", "f32[11] 1 2 3 5 6 7 9 10 12 13 14"},
      {8, 4, "align_corners", "floor", "f32[4] 0 2 4 7"},
      {3, 9, "asymmetric", "floor", "f32[9] 0 0 0 1 1 1 2 2 2"},
  };
  for (const Case& it : cases) {
    Maker maker(13);
    maker.input("x", 1, {std::to_string(it.from)}).i64("sizes", {1}, {it.to});
    maker.node("Resize", {"x", "", "", "sizes"}, {"y"},
               {Maker::attr("coordinate_transformation_mode", it.coord), Maker::attr("nearest_mode", it.rule)});
    EXPECT_EQ(Opened(maker.output("y")).run({counting({it.from})}), it.y);
  }
}

// Writers of older files say the size that they want as a scale: the size over that of the input.
TEST(onnx_images, a_scale_may_be_a_size_over_a_size) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).f32("wanted", {1}, {6}).node("Shape", {"x"}, {"shape"});
  maker.node("Cast", {"shape"}, {"real"}, {Maker::attr("to", 1)}).node("Div", {"wanted", "real"}, {"scale"});
  maker.node("Resize", {"x", "", "scale"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({3})}), "f32[6] 0 0 1 1 2 2");
  EXPECT_EQ(opened.run({counting({6})}), "f32[6] 0 1 2 3 4 5");
}

TEST(onnx_images, one_scale_for_sizes_that_are_not_known) {
  Maker maker(18);
  maker.input("x", 1, {"n", "m"}).i64("sizes", {2}, {4, 4});
  maker.node("Resize", {"x", "", "", "sizes"}, {"y"}, {Maker::attr("keep_aspect_ratio_policy", "not_larger")});
  maker.output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({1, 2})}), "f32[2,4] 0 0 1 1 0 0 1 1");
  EXPECT_EQ(opened.run({counting({2, 1})}), "f32[4,2] 0 0 0 0 1 1 1 1");
}

// Sizes follow from the scale, and are rounded; coordinates and kernels take the scale itself. Results are those of
// ONNX Runtime and of the evaluator of onnx.
TEST(onnx_images, one_scale_gives_coordinates_and_kernels) {
  struct Case {
    std::vector<int64_t> from, to;
    const char* policy;
    std::vector<Message> attributes;
    const char* y;
  };
  auto coord = [](const char* name) { return Maker::attr("coordinate_transformation_mode", name); };
  const Case cases[] = {
      {{3, 2},
       {4, 4},
       "not_larger",
       {Maker::attr("mode", "linear"), coord("pytorch_half_pixel")},
       "f32[4,3] 0 625 1000 1250 1875 2250 2750 3375 3750 4000 4625 5000"},
      {{3, 2},
       {4, 4},
       "not_larger",
       {Maker::attr("mode", "linear"), coord("half_pixel")},
       "f32[4,3] 0 625 1000 1250 1875 2250 2750 3375 3750 4000 4625 5000"},
      {{3, 2},
       {4, 4},
       "not_larger",
       {coord("half_pixel_symmetric")},
       "f32[4,3] 0 0 1000 2000 2000 3000 2000 2000 3000 4000 4000 5000"},
      {{4, 5},
       {3, 3},
       "not_larger",
       {Maker::attr("mode", "linear"), Maker::attr("antialias", 1)},
       "f32[2,3] 2250 3875 5500 10375 12000 13625"},
      {{2, 3},
       {3, 5},
       "not_smaller",
       {Maker::attr("mode", "cubic"), Maker::attr("exclude_outside", 1)},
       "f32[3,5] -465 -63 650 1365 1767 1053 1455 2169 2884 3286 2883 3285 4000 4715 5117"},
      {{2, 3}, {0, 3}, "not_larger", {}, "f32[0,0]"},
  };
  for (const Case& it : cases) {
    Maker maker(19);
    maker.input("x", 1, {std::to_string(it.from[0]), std::to_string(it.from[1])});
    maker.f32("thousand", {}, {1000}).f32("half", {}, {0.5f}).i64("sizes", {2}, it.to);
    maker.node("Mul", {"x", "thousand"}, {"large"}).node("Add", {"large", "half"}, {"image"});
    std::vector<Message> attributes = it.attributes;
    attributes.push_back(Maker::attr("keep_aspect_ratio_policy", it.policy));
    maker.node("Resize", {"image", "", "", "sizes"}, {"y"}, attributes).output("y");
    EXPECT_EQ(Opened(maker).run({counting({it.from[0], it.from[1]})}), it.y);
  }
}

// As torch and ONNX Runtime have it. The evaluator of onnx divides by n * scale - 1, here 3.5.
TEST(onnx_images, corners_lie_on_corners_whatever_the_scale) {
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

// What is outside of a crop of integers is rounded towards 0.
TEST(onnx_images, a_crop_of_integers_is_extrapolated_by_an_integer) {
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
TEST(onnx_images, an_old_image_shrinks_to_the_elements_that_come_next) {
  Maker maker(10);
  maker.input("x", 1, {"2", "4"}).f32("scales", {2}, {1.5f, 0.6f});
  maker.node("Resize", {"x", "scales"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({2, 4})}), "f32[3,2] 0 2 0 2 4 6");
}

// The formula would move elements by a half along an axis that keeps its size.
TEST(onnx_images, an_axis_that_keeps_its_size_is_left_alone) {
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

// ---- boxes ----

TEST(onnx_images, suppressed_boxes_have_an_open_size_of_at_most_all_boxes) {
  Maker model(13);
  model.input("boxes", 1, {"1", "n", "4"}).input("scores", 1, {"1", "2", "n"}).i64("most", {1}, {INT64_MAX});
  model.node("NonMaxSuppression", {"boxes", "scores", "most"}, {"y"}).output("y");
  auto imported = model.import();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  const ValueType& type = imported->graph.type(imported->graph.outputs()[0].value);
  ASSERT_EQ(type.rank(), 2u);
  EXPECT_EQ(type.dtype, DType::kI64);
  EXPECT_TRUE(type.dims[1].is(3));
  EXPECT_FALSE(type.dims[0].is_literal());
}

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

TEST(onnx_images, how_many_boxes_are_kept_and_from_which_score_the_run_may_say) {
  Tensor boxes = floats({1, 3, 4}, {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}), scores = floats({1, 1, 3}, {1, 3, 2});
  Opened most(suppression("Most", "most"));
  EXPECT_EQ(most.run({boxes, scores, list({1, 1})}), "i64[2,3] 0 0 1 0 0 2");
  EXPECT_EQ(most.run({boxes, scores, list({1, -1})}), "i64[0,3]");
  Opened least(suppression("Least", "least"));
  EXPECT_EQ(least.run({boxes, scores, floats({2}, {1, 2})}), "i64[2,3] 0 0 1 0 0 2");
  EXPECT_EQ(least.run({boxes, scores, floats({2}, {9, 9})}), "i64[0,3]");
}

// A bin of 2 by 2 elements has 2 by 2 samples, in the middle of each.
TEST(onnx_images, boxes_have_as_many_samples_as_elements) {
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

TEST(onnx_images, boxes_have_a_number_of_samples_that_can_be_squared) {
  Maker maker(16);
  maker.input("x", 1, {"1", "1", "2", "2"}).input("boxes", 1, {"1", "4"}).input("of", 7, {"1"});
  maker.node("RoiAlign", {"x", "boxes", "of"}, {"y"}, {Maker::attr("sampling_ratio", int64_t{1} << 62)}).output("y");
  EXPECT_NE(Opened(maker).run({}).find("sampling"), std::string::npos) << Opened(maker).run({});
}

// Bins of up to one, two and three pixels have as many samples along an axis, also where a box leaves the image.
TEST(onnx_images, boxes_have_as_many_samples_as_their_bins_have_pixels) {
  auto align = [](int64_t sampling, const std::vector<float>& boxes, const char* coord) {
    Maker maker(16);
    maker.input("x", 1, {"n", "2", "7", "9"}).i64("of", {2}, {1, 0});
    maker.f32("boxes", {2, 4}, boxes).f32("some", {}, {7.236068f});  // so that no value is a half
    maker.node("RoiAlign", {"x", "boxes", "of"}, {"y"},
               {Maker::attr("sampling_ratio", sampling), Maker::attr("output_height", int64_t{3}),
                Maker::attr("output_width", int64_t{2}), Maker::attr("coordinate_transformation_mode", coord)});
    maker.node("Mul", {"y", "some"}, {"z"}).node("Round", {"z"}, {"rounded"}).output("rounded");
    return Opened(maker).run({counting({2, 2, 7, 9})});
  };
  for (const char* coord : {"half_pixel", "output_half_pixel"}) {
    EXPECT_EQ(align(0, {1, 1, 2.5f, 3.5f, 0, 0, 1.75f, 2}, coord), align(1, {1, 1, 2.5f, 3.5f, 0, 0, 1.75f, 2}, coord));
    EXPECT_EQ(align(0, {1, 1, 4.5f, 6, -2, -3, 1.25f, 2}, coord), align(2, {1, 1, 4.5f, 6, -2, -3, 1.25f, 2}, coord));
    EXPECT_EQ(align(0, {3, 0, 8.25f, 8, 6, 4, 12, 12}, coord), align(3, {3, 0, 8.25f, 8, 6, 4, 12, 12}, coord));
  }
  EXPECT_EQ(align(0, {3, 3, 3, 3, 5, 5, 4, 4}, "half_pixel"),  // nothing lies in it
            "f32[2,2,3,2] 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
}

}  // namespace rlx
