// SPDX-License-Identifier: Apache-2.0
// Numbers of an ONNX graph that only a run knows: as sizes they are symbols, where they decide structure the file is
// imported again for each of their values.
#include "opened.h"

namespace rlx {

using onnx::Maker;

TEST(onnx_run_sizes, a_shape_that_is_an_input_is_read_in_the_run) {
  Maker maker(14);
  maker.input("x", 1, {"n", "3"}).input("s", 7, {"2"}).node("Reshape", {"x", "s"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2, 3}), list({3, 2})}), "f32[3,2] 0 1 2 3 4 5");
  EXPECT_EQ(opened.run({counting({2, 3}), list({-1, 1})}), "f32[6,1] 0 1 2 3 4 5");
  EXPECT_EQ(opened.run({counting({1, 3}), list({0, -1})}), "f32[1,3] 0 1 2");
  EXPECT_NE(opened.run({counting({2, 3}), list({4, 2})}).find("8"), std::string::npos);  // refused
}

TEST(onnx_run_sizes, bounds_of_a_slice_count_from_both_ends) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).input("a", 7, {"1"}).input("b", 7, {"1"}).input("axis", 7, {"1"}).input("step", 7, {"1"});
  maker.node("Slice", {"x", "a", "b", "axis", "step"}, {"y"}).output("y");
  Opened opened(maker);
  auto sliced = [&](int64_t from, int64_t to, int64_t step) {
    return opened.run({counting({5}), list({from}), list({to}), list({0}), list({step})});
  };
  EXPECT_EQ(sliced(1, 4, 1), "f32[3] 1 2 3");
  EXPECT_EQ(sliced(-2, 99, 1), "f32[2] 3 4");
  EXPECT_EQ(sliced(3, -99, -2), "f32[2] 3 1");
  EXPECT_EQ(sliced(4, 4, 1), "f32[0]");
}

TEST(onnx_run_sizes, pads_repeats_and_stretches_are_read_in_the_run) {
  Maker pad(13), tile(13), expand(13);
  pad.input("x", 1, {"3"}).input("p", 7, {"2"}).node("Pad", {"x", "p"}, {"y"}).output("y");
  EXPECT_EQ(Opened(pad).run({counting({3}), list({1, 2})}), "f32[6] 0 0 1 2 0 0");
  EXPECT_EQ(Opened(pad).run({counting({3}), list({-1, 0})}), "f32[2] 1 2");
  tile.input("x", 1, {"2"}).input("r", 7, {"1"}).node("Tile", {"x", "r"}, {"y"}).output("y");
  EXPECT_EQ(Opened(tile).run({counting({2}), list({2})}), "f32[4] 0 1 0 1");
  expand.input("x", 1, {"n"}).input("s", 7, {"2"}).node("Expand", {"x", "s"}, {"y"}).output("y");
  EXPECT_EQ(Opened(expand).run({counting({2}), list({2, 1})}), "f32[2,2] 0 1 0 1");
  EXPECT_EQ(Opened(expand).run({counting({1}), list({1, 3})}), "f32[1,3] 0 0 0");
}

TEST(onnx_run_sizes, an_expand_to_another_size_fails) {
  for (const char* size : {"n", "2"}) {
    Maker maker(13);
    maker.input("x", 1, {size}).input("s", 7, {"1"}).node("Expand", {"x", "s"}, {"y"}).output("y");
    Opened opened(maker);
    EXPECT_EQ(opened.run({counting({2}), list({1})}), "f32[2] 0 1");
    EXPECT_EQ(opened.run({counting({2}), list({2})}), "f32[2] 0 1");
    for (int64_t other : {0, 3, 5}) {
      std::string why = opened.run({counting({2}), list({other})});
      EXPECT_NE(why.find("dynamic_iota"), std::string::npos) << size << ": " << why;
    }
  }
}

TEST(onnx_run_sizes, a_number_as_the_name_of_a_size_says_nothing) {
  Maker maker(13);
  maker.input("x", 1, {"(2)"}).node("Neg", {"x"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "f32[3] 0 -1 -2");
}

TEST(onnx_run_sizes, an_input_that_decides_structure_is_converted_as_others_are) {
  Maker maker(13);
  maker.input("x", 1, {"n", "3"}).input("axes", 7, {"1"}).node("ReduceSum", {"x", "axes"}, {"y"}).output("y");
  Tensor axes = *Tensor::create(DType::kU8, std::array<int64_t, 1>{1});
  axes.as<uint8_t>()[0] = 1;
  EXPECT_EQ(Opened(maker, {{"io.convert", int64_t{1}}}).run({counting({2, 3}), axes}), "f32[2,1] 3 12");
  std::string refused = Opened(maker).run({counting({2, 3}), axes});
  EXPECT_NE(refused.find("'axes' is i64[1], the value given for it is u8[1]"), std::string::npos) << refused;
}

TEST(onnx_run_sizes, an_input_that_decides_structure_makes_a_model_for_each_value) {
  Maker maker(13);
  maker.input("x", 1, {"n", "3"}).input("axes", 7, {"1"}).f32("w", {1}, {2});
  maker.node("ReduceSum", {"x", "axes"}, {"sum"}).node("Mul", {"sum", "w"}, {"y"}).output("y");
  for (int64_t capacity : {1, 8}) {
    Opened opened(maker, {{"cache.capacity", capacity}});
    for (int i = 0; i < 2; i++) {
      EXPECT_EQ(opened.run({counting({2, 3}), list({0})}), "f32[1,3] 6 10 14");
      EXPECT_EQ(opened.run({counting({2, 3}), list({1})}), "f32[2,1] 6 24");
      EXPECT_EQ(opened.run({counting({1, 3}), list({-1})}), "f32[1,1] 6");
    }
    EXPECT_NE(opened.run({counting({2, 3}), list({5})}).find("axis 5"), std::string::npos);
    EXPECT_EQ((*opened.model)->get("", {}).status().code(), Code::kUnsupported);
  }
}

// The product of the branch that is not taken makes no sense at any size.
TEST(onnx_run_sizes, a_branch_that_cannot_be_built_makes_the_condition_static) {
  Maker four, three, maker(13);
  four.node("MatMul", {"x", "w4"}, {"a"}).output("a");
  three.node("MatMul", {"x", "w3"}, {"b"}).output("b");
  maker.input("x", 1, {"n", "4"}).input("which", 7, {"1"}).i64("two", {1}, {2});
  maker.f32("w4", {4, 1}, {1, 1, 1, 1}).f32("w3", {3, 1}, {1, 1, 1}).node("Equal", {"which", "two"}, {"p"});
  maker.node("If", {"p"}, {"y"}, {Maker::attr("then_branch", four), Maker::attr("else_branch", three)}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2, 4}), list({2})}), "f32[2,1] 6 22");
  EXPECT_NE(opened.run({counting({2, 4}), list({1})}).find("MatMul"), std::string::npos);
  EXPECT_EQ(opened.run({counting({1, 4}), list({2})}), "f32[1,1] 6");
}

TEST(onnx_run_sizes, a_condition_far_out_is_static_for_a_branch_in_a_body) {
  Maker good, unknown, body, maker(13);
  good.node("Add", {"v", "x"}, {"a"}).output("a");
  unknown.node("Foo", {"v"}, {"b"}).output("b");
  body.input("i", 7, {}).input("c", 9, {}).input("v", 1, {"2"});
  body.node("Identity", {"c"}, {"c2"}).node("Not", {"q"}, {"r"});
  body.node("If", {"r"}, {"v2"}, {Maker::attr("then_branch", unknown), Maker::attr("else_branch", good)});
  body.output("c2").output("v2");
  maker.input("x", 1, {"2"})
      .input("trips", 7, {})
      .input("which", 7, {})
      .node("Cast", {"which"}, {"q"}, {Maker::attr("to", 9)});
  maker.node("Loop", {"trips", "", "x"}, {"y"}, {Maker::attr("body", body)}).output("y");
  Opened opened(maker);
  auto number = [](int64_t value) { return *list({value}).reshaped({}); };
  EXPECT_EQ(opened.run({counting({2}), number(3), number(1)}), "f32[2] 0 4");
  EXPECT_NE(opened.run({counting({2}), number(3), number(0)}).find("Foo"), std::string::npos);
}

TEST(onnx_run_sizes, what_nothing_can_make_known_is_refused_at_once) {
  Maker maker(13);
  maker.input("x", 1, {"n", "3"}).input("axes", 7, {"1"}).node("ReduceSum", {"x", "axes"}, {"y"}).output("y");
  maker.node("Foo", {"x"}, {"z"}).output("z");
  EXPECT_EQ(Opened(maker).model.status().code(), Code::kUnsupported);
}

TEST(onnx_run_sizes, choices_of_an_import_are_constants_and_sizes) {
  Maker maker(13);
  maker.input("x", 1, {"n", "3"}).input("axes", 7, {"1"}).node("ReduceSum", {"x", "axes"}, {"y"}).output("y");
  auto bytes = std::make_shared<const std::string>(maker.bytes());
  Source source{std::as_bytes(std::span(*bytes)), bytes, {}};
  auto refused = import_onnx(source, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(*refused.status().detail(kStaticInputs), "axes");
  ImportOptions options;
  options.choices.dims = {{"n", 4}};
  options.choices.values = {{"axes", list({1})}};
  auto chosen = import_onnx(source, options);
  ASSERT_TRUE(chosen.ok()) << chosen.status().message();
  EXPECT_EQ(text_of(chosen->graph.type(chosen->graph.outputs()[0].value).dims), "[4,1]");
  EXPECT_EQ(chosen->graph.inputs().size(), 2u);
}

// "n / 2" does not say n: the least size that agrees stands for it, where no other dim says more.
TEST(onnx_run_sizes, a_size_that_only_an_expression_shows_is_one_that_agrees) {
  for (bool is_named : {false, true}) {
    Maker maker(13);
    maker.input("x", 1, {"max(0, n - 3) / 2", "2"}).input("z", 1, {is_named ? "n" : "1"});
    maker.node("ReduceSum", {"z"}, {"s"}).node("Add", {"x", "s"}, {"y"}).output("y");
    Opened opened(maker);
    EXPECT_EQ(opened.run({counting({2, 2}), counting({is_named ? 8 : 1})}),
              is_named ? "f32[2,2] 28 29 30 31" : "f32[2,2] 0 1 2 3");
    EXPECT_EQ(opened.run({counting({0, 2}), counting({1})}), "f32[0,2]");
  }
}

TEST(onnx_run_sizes, what_a_run_finds_to_be_1_broadcasts) {
  for (const char* op : {"Add", "Max"}) {
    Maker maker(14);
    maker.input("x", 1, {"m"}).input("s", 7, {"1"}).input("y", 1, {"n"});
    maker.node("Reshape", {"x", "s"}, {"z"}).node(op, {"z", "y"}, {"both"}).output("both");
    Opened opened(maker);
    EXPECT_EQ(opened.run({counting({3}), list({3}), counting({3})}),
              std::string_view(op) == "Add" ? "f32[3] 0 2 4" : "f32[3] 0 1 2");
    EXPECT_EQ(opened.run({counting({1}), list({1}), counting({3})}), "f32[3] 0 1 2");
    EXPECT_EQ(opened.run({counting({3}), list({3}), counting({1})}), "f32[3] 0 1 2");
    EXPECT_EQ(opened.run({counting({1}), list({1}), counting({0})}), "f32[0]");
    EXPECT_NE(opened.run({counting({2}), list({2}), counting({3})}).find("does not hold"), std::string::npos);
  }
}

// The element beyond the last is outside.
TEST(onnx_run_sizes, borders_of_a_crop_are_data) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).input("roi", 1, {"2"}).i64("size", {1}, {4});
  maker.node("Resize", {"x", "roi", "", "size"}, {"y"},
             {Maker::attr("mode", "linear"), Maker::attr("coordinate_transformation_mode", "tf_crop_and_resize"),
              Maker::attr("extrapolation_value", -1.0F)});
  maker.output("y");
  Opened model(maker);
  Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 1>{4}), roi = counting({2});
  for (int i = 0; i < 4; i++) x.as<float>()[i] = static_cast<float>(4 << i);
  roi.as<float>()[0] = 0.25F, roi.as<float>()[1] = 1.25F;
  EXPECT_EQ(model.run({x, roi}), "f32[4] 7 14 28 -1");
}

TEST(onnx_run_sizes, axes_say_how_many_bounds_a_slice_has) {
  Maker maker(13);
  maker.input("x", 1, {"3", "3"}).input("from", 7, {"a"}).input("to", 7, {"b"}).i64("axes", {1}, {1});
  maker.node("Slice", {"x", "from", "to", "axes"}, {"y"}).output("y");
  Opened model(maker);
  EXPECT_EQ(model.run({counting({3, 3}), list({1}), list({2})}), "f32[3,1] 1 4 7");
  EXPECT_EQ(model.run({counting({3, 3}), list({1, 1}), list({2, 2})}), "'a' must be 1: size needs a = 1; got 2");
}

// No size of the model is open: the row of each trip alone is found.
TEST(onnx_run_sizes, what_a_trip_finds_to_be_1_broadcasts) {
  Maker body, maker(13);
  body.input("i", 7, {"1"}).input("c", 9, {}).input("v", 1, {"2"}).i64("one", {1}, {1});
  body.node("Add", {"i", "one"}, {"next"}).node("Slice", {"table", "i", "next"}, {"row"});
  body.node("Identity", {"c"}, {"c2"}).node("Add", {"v", "row"}, {"v2"}).output("c2").output("v2");
  maker.f32("table", {4}, {1, 2, 3, 4}).input("x", 1, {"2"}).input("trips", 7, {});
  maker.node("Loop", {"trips", "", "x"}, {"y"}, {Maker::attr("body", body)}).output("y");
  Opened model(maker);
  Tensor three = *Tensor::create(DType::kI64, {});
  three.as<int64_t>()[0] = 3;
  EXPECT_EQ(model.run({counting({2}), three}), "f32[2] 6 7");
}

// The loop finds the three sizes of its carry one after another; the reshape needs their product.
TEST(onnx_run_sizes, a_guard_waits_for_all_sizes_that_a_loop_finds) {
  Maker body, maker(13);
  body.input("i", 7, {}).input("c", 9, {}).input("v", 1, {"a", "b", "c"}).i64("rest", {2}, {2, 1}).i64("none", {}, {1});
  body.node("Concat", {"rest", "s"}, {"shape"}, {Maker::attr("axis", 0)}).node("Reshape", {"v", "shape"}, {"v2"});
  body.node("Less", {"i", "none"}, {"go"}).output("go").output("v2");
  maker.input("x", 1, {"2", "1", "3"}).input("s", 7, {"1"}).i64("trips", {}, {2}).i64("flat", {2}, {2, 3});
  maker.node("Loop", {"trips", "", "x"}, {"z"}, {Maker::attr("body", body)}).node("Reshape", {"z", "flat"}, {"y"});
  EXPECT_EQ(Opened(maker.output("y")).run({counting({2, 1, 3}), list({3})}), "f32[2,3] 0 1 2 3 4 5");
}

TEST(onnx_run_sizes, what_a_run_finds_to_be_1_is_expanded_and_multiplied) {
  Maker expand(14), matmul(14);
  expand.input("x", 1, {"m"}).input("s", 7, {"1"}).i64("shape", {1}, {2});
  expand.node("Reshape", {"x", "s"}, {"z"}).node("Expand", {"z", "shape"}, {"y"}).output("y");
  Opened expanded(expand);
  EXPECT_EQ(expanded.run({counting({2}), list({2})}), "f32[2] 0 1");
  EXPECT_EQ(expanded.run({counting({1}), list({1})}), "f32[2] 0 0");
  matmul.input("x", 1, {"m"}).input("s", 7, {"3"}).input("y", 1, {"2", "2", "1"});
  matmul.node("Reshape", {"x", "s"}, {"z"}).node("MatMul", {"z", "y"}, {"xy"}).output("xy");
  Opened multiplied(matmul);
  EXPECT_EQ(multiplied.run({counting({4}), list({2, 1, 2}), counting({2, 2, 1})}), "f32[2,1,1] 1 13");
  EXPECT_EQ(multiplied.run({counting({2}), list({1, 1, 2}), counting({2, 2, 1})}), "f32[2,1,1] 1 3");
}

// Writers give two sizes one name by mistake, and other runtimes do not compare them.
TEST(onnx_run_sizes, a_name_may_have_two_sizes) {
  Maker maker(13);
  maker.input("x", 1, {"b"}).input("y", 1, {"b"}).node("Concat", {"x", "y"}, {"z"}, {Maker::attr("axis", 0)});
  maker.output("z");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2}), counting({2})}), "f32[4] 0 1 0 1");
  EXPECT_EQ(opened.run({counting({2}), counting({3})}), "f32[5] 0 1 0 1 2");
}

TEST(onnx_run_sizes, where_two_sizes_of_a_name_do_not_suit_the_error_names_it) {
  Maker maker(13);
  maker.input("x", 1, {"b"}).input("y", 1, {"b"}).node("Add", {"x", "y"}, {"z"}).output("z");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2}), counting({3})}), "'y', axis 0: b is 2, not 3");
}

TEST(onnx_run_sizes, a_sum_of_sizes_that_nothing_tells_apart_is_a_size) {
  Maker maker;
  maker.input("x", 1, {"past + now"}).node("Neg", {"x"}, {"y"}).output("y");
  EXPECT_EQ(Opened(maker).run({counting({3})}), "f32[3] 0 -1 -2");
  Maker both;
  both.input("x", 1, {"past + now"}).input("z", 1, {"now"}).node("Neg", {"x"}, {"y"}).output("y");
  EXPECT_EQ(Opened(both).run({counting({3}), counting({1})}), "f32[3] 0 -1 -2");
  EXPECT_NE(Opened(both).run({counting({3}), counting({4})}).substr(0, 3), "f32");
}

// With the end of the range as a number its length is one, and so is the scale.
TEST(onnx_run_sizes, a_scale_follows_from_the_length_of_a_range) {
  Maker maker(13);
  maker.input("x", 1, {"2"}).input("end", 1, {}).f32("zero", {}, {0}).f32("one", {}, {1}).f32("two", {1}, {2});
  maker.node("Range", {"zero", "end", "one"}, {"numbers"}).node("Shape", {"numbers"}, {"count"});
  maker.node("Cast", {"count"}, {"real"}, {Maker::attr("to", 1)}).node("Div", {"real", "two"}, {"scales"});
  maker.node("Resize", {"x", "", "scales"}, {"y"}).output("y");
  Opened opened(maker);
  EXPECT_EQ(opened.run({counting({2}), floats({}, {4})}), "f32[4] 0 0 1 1");
  EXPECT_EQ(opened.run({counting({2}), floats({}, {5.5F})}), "f32[6] 0 0 0 1 1 1");
  EXPECT_EQ(opened.run({counting({2}), floats({}, {80})}).substr(0, 7), "f32[80]");
}

TEST(onnx_run_sizes, what_literals_count_is_a_size_of_the_graph) {
  Maker maker(13);
  maker.input("x", 1, {"n"}).i64("mask", {4}, {0, 1, 0, 1}).i64("one", {1}, {1});
  maker.node("NonZero", {"mask"}, {"found"}).node("Shape", {"found"}, {"shape"});
  maker.node("Concat", {"shape", "one"}, {"to"}, {Maker::attr("axis", 0)}).node("Reshape", {"x", "to"}, {"y"});
  auto imported = maker.output("y").import();
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(text_of(imported->graph.type(imported->graph.outputs()[0].value).dims), "[1,2,1]");
}

// No body has rows whose size it finds itself, so that the scan is unrolled.
TEST(onnx_run_sizes, rows_of_a_scan_have_a_size_that_is_an_input) {
  Maker body, maker(13);
  body.input("c", 1, {"", ""}).input("r", 1, {"", ""}).node("Reshape", {"r", "shape"}, {"row"});
  body.node("Add", {"c", "row"}, {"next"}).node("Identity", {"next"}, {"seen"}).output("next").output("seen");
  maker.input("start", 1, {"1", "1"}).input("x", 1, {"t", "1", "4"}).input("rows", 7, {"1"}).i64("rest", {1}, {-1});
  maker.node("Concat", {"rows", "rest"}, {"shape"}, {Maker::attr("axis", 0)});
  maker.node("Scan", {"start", "x"}, {"last", "y"},
             {Maker::attr("body", body), Maker::attr("num_scan_inputs", 1),
              Maker::attr("scan_output_directions", std::vector<int64_t>{1})});
  Opened opened(maker.output("y"));
  EXPECT_EQ(opened.run({counting({1, 1}), counting({2, 1, 4}), list({2})}), "f32[2,2,2] 4 6 8 10 0 1 2 3");
  EXPECT_EQ(opened.run({counting({1, 1}), counting({1, 1, 4}), list({1})}), "f32[1,1,4] 0 1 2 3");
}

}  // namespace rlx
