// SPDX-License-Identifier: Apache-2.0
// Products with weights of few bits against sums in f64: every width, kind of zero point and border of tiles and
// blocks.
#include "backends/cpu/gemm/nbits.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

enum class Zeros { kMiddle, kPacked, kFloats };

struct Shape {
  int64_t m, n, k, block;
};
const Shape kShapes[] = {{1, 16, 512, 32}, {1, 1, 1, 16},      {3, 5, 100, 16},  {2, 17, 513, 128}, {65, 4, 48, 16},
                         {7, 33, 17, 64},  {1, 6, 1500, 1024}, {4, 3, 1024, 16}, {0, 4, 32, 16},    {2, 3, 0, 16},
                         {2, 0, 32, 16},   {130, 18, 40, 32},  {5, 7, 600, 16},  {1, 17, 4500, 64}, {3, 5, 8250, 32},
                         {4, 2, 31, 32},   {8, 17, 200, 16},   {6, 3, 4128, 16}, {9, 5, 64, 32}};

// The numbers of a row of bytes.
int number_at(const uint8_t* row, int64_t i, int bits) {
  return row[i * bits / 8] >> (i * bits % 8) & ((1 << bits) - 1);
}

void check(Isa isa, const Shape& s, int bits, Zeros zeros, bool has_bias, std::mt19937& rng) {
  int64_t blocks = (s.k + s.block - 1) / s.block, row = blocks * s.block * bits / 8, zero_row = (blocks * bits + 7) / 8;
  Guarded x = Guarded::random(s.m * s.k, rng, -1, 1, 3), scale = Guarded::random(s.n * blocks, rng);
  Guarded zero = Guarded::random(s.n * blocks, rng, 0, 4), bias = Guarded::random(s.n, rng);
  std::vector<uint8_t> packed(static_cast<size_t>(s.n * row)), packed_zero(static_cast<size_t>(s.n * zero_row));
  for (uint8_t& byte : packed) byte = static_cast<uint8_t>(rng());
  for (uint8_t& byte : packed_zero) byte = static_cast<uint8_t>(rng());
  Guarded y(s.m * s.n, 2), again(y.size(), 2);
  NbitsProductArgs args{.x = x.data(), .packed = packed.data(), .scale = scale.data()};
  args.zero = zeros == Zeros::kFloats ? zero.data() : nullptr;
  args.packed_zero = zeros == Zeros::kPacked ? packed_zero.data() : nullptr;
  args.bias = has_bias ? bias.data() : nullptr;
  args.m = s.m, args.n = s.n, args.k = s.k, args.block = s.block, args.bits = bits;
  args.y = y.data();
  run_whole(nbits_fns(isa).product, args);
  args.y = again.data();
  run_backwards(nbits_fns(isa).product, args);
  ASSERT_TRUE(y.same_bits(again));
  ASSERT_TRUE(y.guards_intact());
  for (int64_t i = 0; i < s.m; i++)
    for (int64_t j = 0; j < s.n; j++) {
      double sum = has_bias ? double(bias[j]) : 0, size = 0;
      for (int64_t t = 0; t < s.k; t++) {
        int64_t b = t / s.block;
        double from = zeros == Zeros::kFloats   ? double(zero[j * blocks + b])
                      : zeros == Zeros::kPacked ? number_at(packed_zero.data() + j * zero_row, b, bits)
                                                : 1 << (bits - 1);
        double w = (number_at(packed.data() + j * row, t, bits) - from) * double(scale[j * blocks + b]);
        sum += double(x[i * s.k + t]) * w;
        size += std::abs(double(x[i * s.k + t]) * w);
      }
      ASSERT_NEAR(double(y[i * s.n + j]), sum, 1e-6 + 1e-6 * size) << i << ", " << j;
    }
}

TEST(nbits, products_are_sums) {
  std::mt19937 rng(1);
  for (Isa isa : available_isas())
    for (const Shape& shape : kShapes)
      for (int bits : {2, 4, 8})
        for (Zeros zeros : {Zeros::kMiddle, Zeros::kPacked, Zeros::kFloats}) {
          SCOPED_TRACE(::testing::Message() << isa_name(isa) << ", shape " << &shape - kShapes << ", bits " << bits
                                            << ", zeros " << static_cast<int>(zeros));
          ASSERT_NO_FATAL_FAILURE(check(isa, shape, bits, zeros, rng() % 2 == 0, rng));
        }
}

// What stands behind the last term is not read, and no weight of a row without terms.
TEST(nbits, weights_beyond_the_terms_count_nothing) {
  for (Isa isa : available_isas()) {
    Guarded x(1), y(1), scale(1);
    x[0] = 2, scale[0] = INFINITY;
    uint8_t packed[8];
    std::fill(std::begin(packed), std::end(packed), 0xff);
    NbitsProductArgs args{.x = x.data(), .packed = packed, .scale = scale.data(), .y = y.data()};
    args.m = args.n = args.k = 1, args.block = 16;
    run_whole(nbits_fns(isa).product, args);
    EXPECT_EQ(y[0], INFINITY);
  }
}

}  // namespace
}  // namespace rlx::cpu
