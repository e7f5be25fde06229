// SPDX-License-Identifier: Apache-2.0
// Numbers as their dtypes have them: integers that wrap, few bits, doubles; and attributes with one number too few or
// too many.
#include "opened.h"

namespace rlx {

using onnx::Maker;

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

TEST(onnx_numbers, floats_are_rounded_to_few_bits) {
  for (int to : {21, 22}) {
    Maker maker(21);
    maker.input("x", 1, {"n"}).node("Cast", {"x"}, {"few"}, {Maker::attr("to", to)});
    maker.node("Cast", {"few"}, {"y"}, {Maker::attr("to", 1)}).output("y");
    EXPECT_EQ(Opened(maker).run({floats({5}, {0.4f, 0.5f, 1.5f, 2.5f, 6.9f})}), "f32[5] 0 0 2 2 7") << to;
  }
}

static Message uint4_of_3() {
  return Message().number(2, 21).text(9, std::string_view("\3", 1));
}

TEST(onnx_numbers, a_constant_of_strings_is_refused_where_a_node_reads_it) {
  Maker maker(21);
  maker.input("x", 1, {"n"}).node("Constant", {}, {"words"}, {Maker::attr("value_string", "a")});
  maker.node("Constant", {}, {"more"}, {Message().text(1, "value").sub(5, Message().number(2, 8)).number(20, 4)});
  maker.node("Neg", {"x"}, {"y"});
  EXPECT_EQ(Opened(Maker(maker).output("y")).run({floats({1}, {3})}), "f32[1] -3");
  for (const char* strings : {"words", "more"})
    EXPECT_EQ(Opened(Maker(maker).node("Shape", {strings}, {"z"}).output("z")).run({floats({1}, {3})}),
              format("ONNX model: node 'z' (Shape of ai.onnx, opset 21) cannot be imported; in all: [Shape of ai.onnx, "
                     "opset 21: ONNX model: tensor '{}': elements of the ONNX type string; 1 node]",
                     strings));
}

// A zero point of 4 bits says how large the numbers may be.
static std::string quantized_from_0_to_15(Maker maker, const char* zero) {
  maker.f32("one", {}, {1}).input("x", 1, {"n"}).node("QuantizeLinear", {"x", "one", zero}, {"y"}).output("y");
  return Opened(maker).run({floats({3}, {-9, 0, 99})});
}

TEST(onnx_numbers, a_constant_has_few_bits) {
  Maker maker(21);
  maker.node("Constant", {}, {"zero"}, {Message().text(1, "value").sub(5, uint4_of_3()).number(20, 4)});
  EXPECT_EQ(quantized_from_0_to_15(maker, "zero"), "u8[3] 0 3 15");
}

TEST(onnx_numbers, few_bits_stay_few_where_they_move) {
  Maker maker(21);
  maker.node("Constant", {}, {"few"}, {Message().text(1, "value").sub(5, uint4_of_3()).number(20, 4)});
  maker.i64("first", {1}, {0}).node("Unsqueeze", {"few", "first"}, {"row"}).node("Transpose", {"row"}, {"turned"});
  maker.node("Squeeze", {"turned", "first"}, {"zero"});
  EXPECT_EQ(quantized_from_0_to_15(maker, "zero"), "u8[3] 0 3 15");
}

TEST(onnx_numbers, few_bits_stay_few_where_a_branch_gives_them) {
  Maker branch(21), maker(21);
  branch.node("Constant", {}, {"few"}, {Message().text(1, "value").sub(5, uint4_of_3()).number(20, 4)}).output("few");
  maker.input("c", 9, {});
  maker.node("If", {"c"}, {"zero"}, {Maker::attr("then_branch", branch), Maker::attr("else_branch", branch)});
  maker.f32("one", {}, {1}).input("x", 1, {"n"}).node("QuantizeLinear", {"x", "one", "zero"}, {"y"}).output("y");
  auto chosen = Tensor::create(DType::kBool, {});
  chosen->as<uint8_t>()[0] = 1;
  EXPECT_EQ(Opened(maker).run({*chosen, floats({3}, {-9, 0, 99})}), "u8[3] 0 3 15");
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

TEST(onnx_numbers, bools_that_are_scattered_are_added_as_an_or_and_multiplied_as_an_and) {
  for (const char* op_type : {"ScatterElements", "ScatterND"})
    for (const char* reduction : {"add", "mul"}) {
      bool is_rows = std::string_view(op_type) == "ScatterND", is_sum = std::string_view(reduction) == "add";
      Maker maker(18);
      maker.input("x", 1, {"4"})
          .input("u", 1, {"4"})
          .i64("at", is_rows ? std::vector<int64_t>{4, 1} : std::vector<int64_t>{4}, {0, 1, 2, 3});
      maker.node("Cast", {"x"}, {"p"}, {Maker::attr("to", 9)}).node("Cast", {"u"}, {"q"}, {Maker::attr("to", 9)});
      maker.node(op_type, {"p", "at", "q"}, {"y"}, {Maker::attr("reduction", reduction)}).output("y");
      EXPECT_EQ(Opened(maker).run({floats({4}, {0, 0, 1, 1}), floats({4}, {0, 1, 0, 1})}),
                is_sum ? "bool[4] 0 1 1 1" : "bool[4] 0 0 0 1");
    }
}

}  // namespace rlx
