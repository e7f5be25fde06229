// SPDX-License-Identifier: Apache-2.0
// Products and convolutions of integers of which both sides are of the run, and elementwise ops on quantised numbers:
// each by its row, and every bit of the oracle's.
#include <cstring>

#include "ir/text.h"
#include "tests/unit/programs.h"

namespace rlx {

using namespace testing_programs;

namespace {

// `text` makes y of integers p[2,6,9,8] and q[4,3,3,3], which are i8, or of s and t, the f32 that these are cast from.
struct IntegerRow {
  const char *name, *text;
};

constexpr IntegerRow kRows[] = {
    {"matmul_integers",
     "a = cast(s) to=i32\n b = cast(t) to=i32\n c = reshape(a) shape=[2,72,6]\n d = reshape(b) shape=[6,18]\n"
     " y = matmul(c, d) -> i32[2,72,18]"},
    {"matmul_integers",
     "a = cast(p) to=i64\n b = cast(q) to=i64\n c = reshape(a) shape=[2,6,72]\n d = reshape(b) shape=[18,6]\n"
     " y = matmul(c, d) transpose_a=true transpose_b=true -> i64[2,72,18]"},
    {"matmul_8_bit",
     "z = constant i32[] {3}\n u = reshape(p) shape=[96,9]\n v = reshape(q) shape=[12,9]\n a = cast(u) to=i32\n"
     " b = cast(v) to=i32\n c = sub(a, z)\n d = sub(b, z)\n y = matmul(c, d) transpose_b=true -> i32[96,12]"},
    {"conv_8_bit",
     "z = constant i32[] {3}\n a = cast(p) to=i32\n b = cast(q) to=i32\n c = sub(a, z)\n"
     " y = conv(c, b) groups=2 pad_lo=[1,0] -> i32[2,4,8,6]"},
    {"byte_table",
     "r = concat(p, p) axis=0\n u = constant f32[] {0.05}\n a = dequantize_linear(r, u)\n"
     " b = leaky_relu(a) alpha=0.25\n v = constant f32[] {0.0213}\n z = constant u8[] {9}\n"
     " y = quantize_linear(b, v, z) -> u8[4,6,9,8]"},
    {"byte_table",
     "r = concat(p, p) axis=0\n u = constant f32[] {0.05}\n v = constant f32[] {0.0213}\n"
     " a = dequantize_linear(r, u)\n b = dequantize_linear(r, v)\n c = concat(a, b) axis=3\n"
     " y = quantize_linear(c, v) dtype=i8 -> i8[4,6,9,16]"},
    {"quantized_pair",
     "u = constant f32[] {0.5}\n v = constant f32[] {0.3}\n z = constant i8[] {-3}\n a = reshape(p) shape=[8,12,9]\n"
     " b = reshape(q) shape=[12,9]\n c = dequantize_linear(a, u)\n d = dequantize_linear(b, v)\n e = add(c, d)\n"
     " y = quantize_linear(e, v, z) -> i8[8,12,9]"},
};

Tensor run(const Graph& graph, const char* device, std::string* report = nullptr) {
  auto env = env_with(2);
  auto program = Program::compile(env, graph, nullptr, *env->find_device(device), {});
  EXPECT_TRUE(program.ok()) << program.status().message();
  const std::vector<Tensor> in = {noise({2, 6, 9, 8}), noise({4, 3, 3, 3}, 5)};
  auto out = (*program)->run({}, in, {}, 1);
  EXPECT_TRUE(out.ok()) << out.status().message();
  if (report) *report = *(*program)->report("dispatch");
  return std::move((*out)[0]);
}

}  // namespace

TEST(integer_rows, have_the_bits_of_the_oracle) {
  for (const IntegerRow& row : kRows) {
    SCOPED_TRACE(row.text);
    std::string text =
        "graph \"g\" () {\n x = input f32[2,6,9,8]\n w = input f32[4,3,3,3]\n k = constant f32[] {40}\n"
        " s = mul(x, k)\n t = mul(w, k)\n p = cast(s) to=i8\n q = cast(t) to=i8\n ";
    auto graph = parse(text + row.text + "\n output y = y\n}\n");
    ASSERT_TRUE(graph.ok()) << graph.status().message();
    std::string report;
    Tensor got = run(*graph, "cpu", &report), want = run(*graph, "reference");
    ASSERT_EQ(got.bytes(), want.bytes());
    EXPECT_EQ(std::memcmp(got.data(), want.data(), got.bytes()), 0);
    EXPECT_NE(report.find(std::string("\"") + row.name + "\""), std::string::npos) << report;
  }
}

}  // namespace rlx
