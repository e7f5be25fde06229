// SPDX-License-Identifier: Apache-2.0
// Windows and images: what the importer makes of pads, sizes and scales that files give in several ways.
#include <gtest/gtest.h>

#include "onnx_maker.h"

namespace rlx::onnx {

static std::string type_of(const Result<Imported>& imported, size_t output = 0) {
  if (!imported.ok()) return std::string(imported.status().message());
  return text_of(imported->graph.type(imported->graph.outputs().at(output).value));
}

static Maker transposed(std::vector<std::string> dims, std::vector<Message> attributes) {
  Maker model(13);
  model.input("x", 1, std::move(dims)).f32("w", {1, 1, 3}, {1, 2, 3});
  model.node("ConvTranspose", {"x", "w"}, {"y"}, std::move(attributes)).output("y");
  return model;
}

static Message text_attr(const char* name, const char* value) {
  return Message().text(1, name).text(4, value).number(20, 3);
}

TEST(onnx_images, a_transposed_convolution_has_the_size_that_it_is_told) {
  EXPECT_EQ(type_of(transposed({"1", "1", "4"},
                               {Maker::attr("strides", std::vector<int64_t>{2}), text_attr("auto_pad", "SAME_UPPER")})
                        .import()),
            "f32[1,1,8]");
  EXPECT_EQ(type_of(transposed({"1", "1", "4"}, {Maker::attr("strides", std::vector<int64_t>{2}),
                                                 Maker::attr("output_shape", std::vector<int64_t>{10})})
                        .import()),
            "f32[1,1,10]");
  auto wrong = transposed({"1", "1", "4"}, {Maker::attr("output_shape", std::vector<int64_t>{10, 10})}).import();
  EXPECT_EQ(wrong.status().code(), Code::kShape);
}

TEST(onnx_images, a_scale_is_the_fraction_that_it_was_written_for) {
  for (auto [scale, type] : {std::pair(2.0f, "f32[1,c,2*h]"), std::pair(0.7f, "f32[1,c,((7*h)/10)]")}) {
    Maker model(13);
    model.input("x", 1, {"1", "c", "h"}).f32("scales", {3}, {1, 1, scale});
    model.node("Resize", {"x", "", "scales"}, {"y"}).output("y");
    EXPECT_EQ(type_of(model.import()), type);
  }
}

TEST(onnx_images, scales_that_are_no_sizes_are_refused) {
  for (float scale : {0.0f, -1.0f}) {
    Maker model(13);
    model.input("x", 1, {"1", "c", "h"}).f32("scales", {3}, {1, 1, scale});
    model.node("Resize", {"x", "", "scales"}, {"y"}).output("y");
    EXPECT_EQ(model.import().status().code(), Code::kData);
  }
}

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

}  // namespace rlx::onnx
