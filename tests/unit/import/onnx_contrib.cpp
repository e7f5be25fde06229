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

// The bias of a mask is f32, that of the node has the dtype of its input.
TEST(onnx_contrib, halves_with_a_mask_and_a_bias) {
  Maker maker;
  maker.input("x", 1, {"1", "2", "1"}).i64("seen", {1, 2}, {1, 0}).f32("w", {1, 3}, {1, 1, 1}).f32("b", {3}, {0, 0, 0});
  maker.f32("bias", {1, 1, 2, 2}, {0, 0, 0, 0}).node("Cast", {"seen"}, {"mask"}, {Maker::attr("to", 6)});
  for (const char* name : {"x", "w", "b", "bias"})
    maker.node("Cast", {name}, {std::string("h.") + name}, {Maker::attr("to", 10)});
  maker.node("Attention", {"h.x", "h.w", "h.b", "mask", "", "h.bias"}, {"y"}, {Maker::attr("num_heads", 1)},
             kMicrosoft);
  Tensor x = counting({1, 2, 1});
  x.as<float>()[0] = 7;
  EXPECT_EQ(Opened(maker.output("y")).run({x}), "f16[1,2,1] 7 7");
}

// The mask is for sequences of 3; the only query is at position 1, behind a past of one key.
TEST(onnx_contrib, a_mask_for_the_longest_sequence) {
  Maker maker;
  maker.input("x", 1, {"1", "s", "1"}).f32("w", {1, 3}, {0, 0, 1}).f32("b", {3}, {0, 0, 0});
  maker.f32("past", {2, 1, 1, 1, 1}, {4, 4}).i64("seen", {1, 1, 3, 3}, {1, 1, 0, 0, 1, 1, 1, 1, 1});
  maker.node("Cast", {"seen"}, {"mask"}, {Maker::attr("to", 6)});
  maker.node("Attention", {"x", "w", "b", "mask", "past"}, {"y", "present"}, {Maker::attr("num_heads", 1)}, kMicrosoft);
  Tensor x = counting({1, 1, 1});
  x.as<float>()[0] = 7;
  EXPECT_EQ(Opened(maker.output("y")).run({x}), "f32[1,1,1] 7");
}

TEST(onnx_contrib, two_axes_have_no_spectrum) {
  Maker maker;
  maker.input("x", 1, {"4", "4"}).node("Rfft", {"x"}, {"y"}, {Maker::attr("signal_ndim", 2)}, kMicrosoft).output("y");
  EXPECT_EQ(maker.import().status().code(), Code::kUnsupported);
}

TEST(onnx_contrib, packed_numbers_have_2_4_or_8_bits) {
  for (int64_t bits : {0, 3, -1, 64}) {
    Maker rows;
    rows.input("table", 2, {"4", "8"}).input("i", 7, {"2"}).input("scale", 1, {"4", "1"});
    rows.node("GatherBlockQuantized", {"table", "i", "scale"}, {"y"}, {Maker::attr("bits", bits)}, kMicrosoft);
    Status status = rows.output("y").import().status();
    EXPECT_EQ(status.code(), Code::kData);
    EXPECT_NE(status.message().find(format("'bits' is {}, not 2, 4 or 8", bits)), std::string::npos);
  }
}

// All numbers are 9, which is 1 above the zero point; the scales of the two blocks are 1 and 10. ONNX Runtime is wrong
// about groups and zero points together.
TEST(onnx_contrib, columns_say_which_block_they_belong_to) {
  for (bool has_zero : {false, true}) {
    Maker maker;
    std::vector<int64_t> groups(32, 0);
    groups[5] = 1;
    maker.input("x", 1, {"n", "32"}).f32("scale", {1, 2}, {1, 10}).i64("groups", {32}, groups);
    maker.i64("wide", {1, 2, 8}, std::vector<int64_t>(16, 0x99)).i64("wide_zero", {1}, {0x58});  // 8, and 5
    maker.node("Cast", {"wide"}, {"b"}, {Maker::attr("to", 2)})
        .node("Cast", {"wide_zero"}, {"z"}, {Maker::attr("to", 2)});
    maker.node("MatMulNBits", {"x", "b", "scale", has_zero ? "z" : "", "groups"}, {"y"},
               {Maker::attr("K", 32), Maker::attr("N", 1), Maker::attr("bits", 4), Maker::attr("block_size", 16)},
               kMicrosoft);
    maker.output("y");
    Tensor ones = counting({1, 32});
    std::fill_n(ones.as<float>(), 32, 1.0f);
    EXPECT_EQ(Opened(maker).run({ones}), has_zero ? "f32[1,1] 71" : "f32[1,1] 41");
  }
}

// Rows of 6 numbers in blocks of 4: the second block has 2.
TEST(onnx_contrib, the_last_block_of_a_row_may_be_short) {
  Maker maker(13);
  maker.i64("wide", {2, 3}, {0x98, 0xA9, 0x78, 0x88, 0x99, 0xAA}).input("i", 7, {"n"});
  maker.f32("scale", {2, 2}, {1, 10, 100, 1000}).node("Cast", {"wide"}, {"table"}, {Maker::attr("to", 2)});
  maker.node("GatherBlockQuantized", {"table", "i", "scale"}, {"y"},
             {Maker::attr("bits", 4), Maker::attr("block_size", 4), Maker::attr("quantize_axis", 1)}, kMicrosoft);
  maker.output("y");
  EXPECT_EQ(Opened(maker).run({list({1, 0})}), "f32[2,6] 0 0 100 100 2000 2000 0 1 1 2 0 -10");
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

static Opened of_one_input(const char* op, std::vector<std::string> dims, std::vector<Message> attributes,
                           const char* domain = "") {
  Maker maker;
  maker.input("x", 1, std::move(dims)).node(op, {"x"}, {"y"}, std::move(attributes), domain).output("y");
  return Opened(maker);
}

// Two heads: their numbers stand one head after the other, as the file has them. Distances 0, 1, 2 and more are
// buckets.
TEST(onnx_contrib, a_distance_has_a_bias) {
  Maker maker;
  maker.f32("table", {4, 2}, {0, 1, 2, 3, 10, 11, 12, 13}).input("q", 7, {"1"}).input("k", 7, {"1"});
  maker.node("RelativePositionBias", {"table", "q", "k"}, {"y"}, {Maker::attr("max_distance", 8)}, kMicrosoft)
      .output("y");
  EXPECT_EQ(Opened(maker).run({list({5}), list({2})}),
            "f32[1,2,5,2] 0 0 1 0 2 1 2 2 3 2 10 10 11 10 12 11 12 12 13 12");
}

TEST(onnx_contrib, a_distance_forth_has_a_bias_of_its_own) {
  Maker maker;
  maker.f32("table", {8, 1}, {0, 1, 2, 3, 4, 5, 6, 7}).i64("n", {1}, {5});
  maker.node("RelativePositionBias", {"table", "n", "n"}, {"y"},
             {Maker::attr("max_distance", 8), Maker::attr("is_bidirectional", 1)}, kMicrosoft);
  EXPECT_EQ(Opened(maker.output("y")).run({}), "f32[1,1,5,5] 0 5 6 6 7 1 0 5 6 6 2 1 0 5 6 2 2 1 0 5 3 2 2 1 0");
}

// Both gates are a half: (0.5 * (0.5 * 4 - 1) + 2) times the bias.
TEST(onnx_contrib, gates_scale_the_bias_of_distances) {
  Maker maker;
  maker.input("q", 1, {"1", "2", "4"}).f32("b", {4}, {0, 0, 0, 0}).f32("w", {2, 4}, std::vector<float>(8, 0));
  maker.f32("wb", {4}, {0, 0, 0, 0}).f32("eco", {1, 2, 1, 1}, {4, 4});
  maker.f32("bias", {1, 2, 2, 2}, {0, 2, 4, 6, 8, 10, 12, 14});
  maker.node("GatedRelativePositionBias", {"q", "b", "bias", "w", "wb", "eco"}, {"y"}, {Maker::attr("num_heads", 2)},
             kMicrosoft);
  EXPECT_EQ(Opened(maker.output("y")).run({counting({1, 2, 4})}), "f32[1,2,2,2] 0 5 10 15 20 25 30 35");
}

TEST(onnx_contrib, a_convolution_of_channels_that_stand_last) {
  Maker conv, fused;
  conv.input("x", 1, {"1", "2", "2", "2"}).f32("w", {1, 2, 1, 1}, {1, 10}).f32("b", {1}, {100});
  conv.node("NhwcConv", {"x", "w", "b"}, {"y"}, {Maker::attr("strides", std::vector<int64_t>{2, 1})}, kMicrosoft);
  EXPECT_EQ(Opened(conv.output("y")).run({counting({1, 2, 2, 2})}), "f32[1,1,2,1] 110 132");
  fused.input("x", 1, {"1", "2", "2", "2"}).f32("w", {2, 2, 1, 1}, {1, 0, 0, 1}).input("z", 1, {"1", "2", "2", "2"});
  fused.node("NhwcFusedConv", {"x", "w", "", "z"}, {"y"}, {}, kMicrosoft).output("y");
  EXPECT_EQ(Opened(fused).run({counting({1, 2, 2, 2}), counting({1, 2, 2, 2})}), "f32[1,2,2,2] 0 2 4 6 8 10 12 14");
}

TEST(onnx_contrib, integers_are_multiplied_and_summed_wider) {
  Maker product, sum;
  product.input("x", 3, {"2"}).input("zero", 3, {}).node("MulInteger", {"x", "zero", "x"}, {"y"}, {}, kMicrosoft);
  Tensor x = *Tensor::create(DType::kI8, std::array<int64_t, 1>{2}), zero = *Tensor::create(DType::kI8, {});
  x.as<int8_t>()[0] = -128, x.as<int8_t>()[1] = 100, zero.as<int8_t>()[0] = 28;
  EXPECT_EQ(Opened(product.output("y")).run({x, zero}), "i32[2] 19968 7200");
  sum.input("x", 3, {"2"})
      .node("ReduceSumInteger", {"x"}, {"y"},
            {Maker::attr("axes", std::vector<int64_t>{0}), Maker::attr("keepdims", 0)}, kMicrosoft);
  x.as<int8_t>()[0] = 127;
  EXPECT_EQ(Opened(sum.output("y")).run({x}), "i32[] 227");
}

// Columns of a table of 4 bits, whose two blocks of rows have the scales 1 and 10.
TEST(onnx_contrib, columns_of_a_table_in_blocks) {
  Maker maker;
  maker.input("x", 7, {"32", "2"})
      .i64("at", {}, {1})
      .i64("first", {1}, {0})
      .i64("rows", {1}, {17})
      .i64("step", {1}, {8});
  maker.node("Cast", {"x"}, {"few"}, {Maker::attr("to", 22)}).f32("scale", {2, 2}, {1, 1, 10, 10});
  maker.node("GatherBlockQuantized", {"few", "at", "scale"}, {"column"},
             {Maker::attr("block_size", 16), Maker::attr("gather_axis", 1), Maker::attr("quantize_axis", 0)},
             kMicrosoft);
  maker.node("Slice", {"column", "first", "rows", "first", "step"}, {"y"});
  Tensor x = *Tensor::create(DType::kI64, std::array<int64_t, 2>{32, 2});
  for (int64_t i = 0; i < 64; i++) x.as<int64_t>()[i] = i % 2 == 0 ? 7 : i / 16 - 1;
  EXPECT_EQ(Opened(maker.output("y")).run({x}), "f32[3] -1 0 10");
}

TEST(onnx_contrib, a_table_and_its_scales_have_one_rank) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{}, {1}, {1, 1, 1}}) {
    Maker maker;
    maker.input("table", 2, {"4", "8"}).input("i", 7, {"2"}).f32("scale", dims, {1});
    maker.node("GatherBlockQuantized", {"table", "i", "scale"}, {"y"}, {Maker::attr("block_size", 16)}, kMicrosoft);
    Status status = maker.output("y").import().status();
    EXPECT_EQ(status.code(), Code::kShape);
    EXPECT_NE(status.message().find("must have one rank"), std::string::npos) << status.message();
  }
}

// The sums, 2048 and more, are exact in f32 only.
TEST(onnx_contrib, scales_of_integers_may_be_halves) {
  Maker maker;
  maker.input("x", 7, {"n", "2"}).i64("w", {2, 1}, {64, 1}).f32("scale", {}, {1}).f32("bias", {1}, {-2048});
  for (const char* name : {"x", "w"}) maker.node("Cast", {name}, {std::string("i.") + name}, {Maker::attr("to", 3)});
  for (const char* name : {"scale", "bias"})
    maker.node("Cast", {name}, {std::string("h.") + name}, {Maker::attr("to", 10)});
  maker.node("MatMulIntegerToFloat", {"i.x", "i.w", "h.scale", "h.scale", "", "", "h.bias"}, {"y"}, {}, kMicrosoft);
  Tensor x = *list({32, 1, 32, 3}).reshaped(std::array<int64_t, 2>{2, 2});
  EXPECT_EQ(Opened(maker.output("y")).run({x}), "f16[2,1] 1 3");
}

TEST(onnx_contrib, sums_of_unsigned_integers_are_unsigned) {
  Maker product, sum;
  sum.input("x", 2, {"2"}).node("ReduceSumInteger", {"x"}, {"y"}, {}, kMicrosoft).output("y");
  Tensor bytes = *Tensor::create(DType::kU8, std::array<int64_t, 1>{2});
  bytes.as<uint8_t>()[0] = 255, bytes.as<uint8_t>()[1] = 1;
  EXPECT_EQ(Opened(sum).run({bytes}), "u32[1] 256");
  product.input("x", 4, {"1", "1"}).node("MatMulInteger16", {"x", "x"}, {"y"}, {}, kMicrosoft).output("y");
  Tensor words = *Tensor::create(DType::kU16, std::array<int64_t, 2>{1, 1});
  words.as<uint16_t>()[0] = 65535;
  EXPECT_EQ(Opened(product).run({words}), "u32[1,1] 4294836225");
}

TEST(onnx_contrib, rows_of_a_table) {
  Maker maker;
  maker.f32("w", {3, 2}, {0, 1, 2, 3, 4, 5}).input("i", 7, {"n"});
  maker.node("TorchEmbedding", {"w", "i"}, {"y"}, {}, kMicrosoft).output("y");
  EXPECT_EQ(Opened(maker).run({list({2, 0})}), "f32[2,2] 4 5 0 1");
}

TEST(onnx_contrib, what_ai_onnx_tried_once) {
  Tensor x = counting({3});
  EXPECT_EQ(of_one_input("Affine", {"3"}, {Maker::attr("alpha", 10.0F), Maker::attr("beta", 1.0F)}).run({x}),
            "f32[3] 1 11 21");
  EXPECT_EQ(of_one_input("Scale", {"3"}, {Maker::attr("scale", 3.0F)}).run({x}), "f32[3] 0 3 6");
  std::vector<Message> both{Maker::attr("alpha", 100.0F), Maker::attr("beta", 0.5F)};
  EXPECT_EQ(of_one_input("ScaledTanh", {"3"}, both).run({x}), "f32[3] 0 46 76");
  EXPECT_EQ(of_one_input("ParametricSoftplus", {"3"}, both).run({x}), "f32[3] 69 97 131");
  std::vector<int64_t> border{1, 0, 0, 1}, size{1, 2};
  EXPECT_EQ(of_one_input("Crop", {"1", "1", "2", "3"}, {Maker::attr("border", border)}).run({counting({1, 1, 2, 3})}),
            "f32[1,1,1,2] 1 2");
  EXPECT_EQ(of_one_input("Crop", {"1", "1", "2", "4"}, {Maker::attr("border", border), Maker::attr("scale", size)})
                .run({counting({1, 1, 2, 4})}),
            "f32[1,1,1,2] 1 2");
  std::vector<int64_t> far{1, INT64_MAX, 0, 1};
  EXPECT_EQ(of_one_input("Crop", {"1", "1", "2", "4"}, {Maker::attr("border", far), Maker::attr("scale", size)})
                .run({counting({1, 1, 2, 4})}),
            "f32[1,1,0,2]");
}

TEST(onnx_contrib, pixels_are_scaled_and_channels_shifted) {
  Message bias = Message().text(1, "bias").number(20, 6).f32(7, 10).f32(7, -10);
  Opened opened = of_one_input("ImageScaler", {"1", "2", "1", "2"}, {bias, Maker::attr("scale", 2.0F)});
  EXPECT_EQ(opened.run({counting({1, 2, 1, 2})}), "f32[1,2,1,2] 10 12 -6 -4");
}

// Attributes that say how the operands are laid out: what is not read must not be ignored.
TEST(onnx_contrib, layouts_of_one_device_are_refused) {
  auto refuses = [](const char* op, std::vector<std::string> in, const Message& attribute, const char* word) {
    Maker maker;
    for (const char* name : {"a", "b", "c", "d"}) maker.input(name, 1, {"2", "2", "2"});
    std::vector<Message> attributes{Maker::attr("num_heads", 1), Maker::attr("kv_num_heads", 1), attribute};
    if (std::string_view(op) == "MatMulNBits") attributes = {attribute};
    maker.node(op, std::move(in), {"y"}, attributes, kMicrosoft).output("y");
    std::string message(maker.import().status().message());
    EXPECT_NE(message.find(word), std::string::npos) << message;
  };
  refuses("MatMulNBits", {"a", "b", "c"}, Maker::attr("weight_prepacked", 1), "weight_prepacked");
  refuses("RotaryEmbedding", {"a", "b", "c", "d"}, Maker::attr("is_packed_batching", 1), "is_packed_batching");
  refuses("GroupQueryAttention", {"a", "b", "c"}, Maker::attr("k_quant_type", "PER_TENSOR"), "quantised");
  refuses("GroupQueryAttention", {"a", "b", "c"}, Maker::attr("qk_output", 1), "qk_output");
}

TEST(onnx_contrib, values_are_told_in_the_order_in_which_they_occur) {
  for (const char* output : {"y", "which", "count"}) {
    Maker maker;
    maker.input("x", 1, {"n"}).node("Unique", {"x"}, {"y", "which", "count"}, {}, kMicrosoft).output(output);
    Tensor x = *Tensor::create(DType::kF32, std::array<int64_t, 1>{5});
    std::copy_n(std::array<float, 5>{3, 1, 3, 2, 1}.data(), 5, x.as<float>());
    EXPECT_EQ(Opened(maker).run({x}), *output == 'y'   ? "f32[3] 3 1 2"
                                      : *output == 'w' ? "i64[5] 0 1 0 2 1"
                                                       : "i64[3] 2 2 1");
  }
}

// What ONNX Runtime joins with a Gemm.
TEST(onnx_contrib, a_product_may_end_in_any_activation) {
  std::pair<const char*, std::string> kEnds[] = {{"Elu", "0 5"}, {"ThresholdedRelu", "0 5"}, {"Softplus", "0 5"}};
  for (const auto& [activation, wanted] : kEnds) {
    Maker maker;
    maker.input("x", 1, {"1", "1"}).f32("w", {1, 2}, {-5, 5});
    maker.node("FusedGemm", {"x", "w"}, {"y"}, {Maker::attr("activation", activation)}, kMicrosoft).output("y");
    Tensor one = counting({1, 1});
    one.as<float>()[0] = 1;
    EXPECT_EQ(Opened(maker).run({one}), "f32[1,2] " + wanted) << activation;
  }
}

TEST(onnx_contrib, norms_give_their_statistics) {
  auto statistic = [](const char* op_type, const std::vector<std::string>& in, const std::vector<std::string>& out) {
    Maker maker(17);
    maker.input("x", 1, {"1", "2"}).f32("scale", {2}, {1, 1}).f32("hundred", {}, {100});
    maker.node(op_type, in, out, {Maker::attr("epsilon", 0.0f)}, kMicrosoft).node("Mul", {"y", "hundred"}, {"z"});
    return Opened(maker.output("z")).run({counting({1, 2})});
  };
  EXPECT_EQ(statistic("SkipLayerNormalization", {"x", "x", "scale"}, {"n", "y"}), "f32[1,1] 100");
  EXPECT_EQ(statistic("SkipLayerNormalization", {"x", "x", "scale"}, {"n", "", "y"}), "f32[1,1] 100");
  EXPECT_EQ(statistic("SkipSimplifiedLayerNormalization", {"x", "x", "scale"}, {"n", "", "y"}), "f32[1,1] 70");
}

TEST(onnx_contrib, a_range_counts_by_1) {
  Maker maker(13);
  maker.input("first", 1, {}).input("end", 1, {}).node("Range", {"first", "end"}, {"y"}, {}, kMicrosoft).output("y");
  Tensor first = counting({}), end = counting({});
  end.as<float>()[0] = 3;
  EXPECT_EQ(Opened(maker).run({first, end}), "f32[3] 0 1 2");
}

// The numbers that its schema names mean what a node without them means.
TEST(onnx_contrib, defaults_of_grouped_queries_may_be_written) {
  auto attended = [](std::vector<Message> attributes) {
    attributes.push_back(Maker::attr("num_heads", 1));
    attributes.push_back(Maker::attr("kv_num_heads", 1));
    Maker maker(17);
    maker.input("x", 1, {"1", "1", "8"}).node("Cast", {"last64"}, {"last"}, {Maker::attr("to", 6)});
    maker.i64("last64", {1}, {0}).i64("total64", {}, {1}).node("Cast", {"total64"}, {"total"}, {Maker::attr("to", 6)});
    maker.node("GroupQueryAttention", {"x", "x", "x", "", "", "last", "total"}, {"y", "k", "v"}, attributes,
               kMicrosoft);
    return Opened(maker.output("y")).run({counting({1, 1, 8})});
  };
  std::string plain = attended({});
  EXPECT_EQ(plain, "f32[1,1,8] 0 1 2 3 4 5 6 7");
  EXPECT_EQ(attended({Maker::attr("smooth_softmax", -1), Maker::attr("causal", 1),
                      Maker::attr("sliding_window_cache", 0), Maker::attr("qk_norm_epsilon", 1e-6f)}),
            plain);
  EXPECT_NE(attended({Maker::attr("causal", 0)}).find("'causal'"), std::string::npos);
}

TEST(onnx_contrib, distances_are_roots_of_their_squares) {
  for (const char* metric : {"euclidean", "sqeuclidean"}) {
    Maker maker;
    maker.input("a", 1, {"m", "4"}).input("b", 1, {"n", "4"});
    maker.node("CDist", {"a", "b"}, {"y"}, {Maker::attr("metric", metric)}, kMicrosoft).output("y");
    bool is_root = std::string_view(metric) == "euclidean";
    EXPECT_EQ(Opened(maker).run({counting({2, 4}), counting({1, 4})}), is_root ? "f32[2,1] 0 8" : "f32[2,1] 0 64");
  }
}

// Nor is any of rows far from 0, whose squares nearly cancel.
TEST(onnx_contrib, no_distance_is_less_than_0) {
  Maker maker(17);
  maker.input("a", 1, {"n", "3"}).node("CDist", {"a", "a"}, {"y"}, {}, kMicrosoft).f32("zero", {1}, {0});
  maker.node("Less", {"y", "zero"}, {"below"}).node("Cast", {"below"}, {"z"}, {Maker::attr("to", 6)});
  maker.node("ReduceMax", {"z"}, {"most"}).output("most");
  Tensor far = counting({64, 3});
  for (int64_t i = 0; i < far.count(); i++) far.as<float>()[i] = 1000 + 0.37f * far.as<float>()[i];
  EXPECT_EQ(Opened(maker).run({far}), "i32[1,1] 0");
}

TEST(onnx_contrib, a_layout_for_one_processor_is_named) {
  Maker maker;
  maker.input("x", 1, {"1", "8", "4", "4"}).node("ReorderInput", {"x"}, {"y"}, {}, "com.microsoft.nchwc").output("y");
  EXPECT_NE(Opened(maker).run({}).find("ONNX Runtime writes at ORT_ENABLE_ALL"), std::string::npos);
}

}  // namespace rlx
