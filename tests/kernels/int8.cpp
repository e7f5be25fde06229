// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers against plain loops: every bit, on every instruction set.
#include "backends/cpu/gemm/int8.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Product {
  int64_t m, n, k;
  bool a_signed, b_signed, packed, zeros, scaled;
};

std::vector<uint8_t> noise(int64_t count, std::mt19937& rng) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng());
  return bytes;
}

int64_t value(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

void check(const Product& it, const Loop<Int8ProductArgs>& loop, std::mt19937& rng) {
  std::vector<uint8_t> a = noise(it.m * it.k, rng), b = noise(it.k * it.n, rng);
  std::vector<std::byte> packed(static_cast<size_t>(int8_packed_bytes(it.k, it.n)));
  int32_t a_zero = 77;
  std::vector<int32_t> b_zero(static_cast<size_t>(it.n));
  std::vector<float> scale(static_cast<size_t>(it.n)), bias(static_cast<size_t>(it.n));
  for (int64_t c = 0; c < it.n; c++) {
    b_zero[c] = static_cast<int32_t>(rng() % 300) - 150;
    scale[c] = static_cast<float>(rng() % 100) / 1000;
    bias[c] = static_cast<float>(rng() % 100);
  }
  Guarded y(it.m * it.n);
  Int8ProductArgs args;
  args.a = a.data();
  args.a_row = it.k;
  args.b = b.data();
  args.b_row = it.n;
  args.y = reinterpret_cast<uint8_t*>(y.data());
  args.y_row = it.n;
  args.m = it.m;
  args.n = it.n;
  args.k = it.k;
  args.a_signed = it.a_signed;
  args.b_signed = it.b_signed;
  if (it.packed) {
    Int8PackArgs pack{{b.data(), it.b_signed}, it.k, it.n, it.n, 1, packed.data()};
    kPackInt8.run(pack, 0, kPackInt8.parts(pack));
    args.packed = packed.data();
    args.b = nullptr;
  }
  if (it.zeros) args.a_zero = &a_zero, args.b_zero = b_zero.data(), args.b_zero_by_column = true;
  if (it.scaled) args.scale = scale.data(), args.scale_by_column = true, args.bias = bias.data();
  run_backwards(loop, args);
  ASSERT_TRUE(y.guards_intact());
  for (int64_t r = 0; r < it.m; r++)
    for (int64_t c = 0; c < it.n; c++) {
      uint32_t sum = 0;
      for (int64_t t = 0; t < it.k; t++)
        sum += static_cast<uint32_t>((value(a[r * it.k + t], it.a_signed) - (it.zeros ? a_zero : 0)) *
                                     (value(b[t * it.n + c], it.b_signed) - (it.zeros ? b_zero[c] : 0)));
      auto total = static_cast<int32_t>(sum);
      volatile float scaled = static_cast<float>(total) * scale[c];
      float with_bias = scaled + bias[c];
      const void* want = it.scaled ? static_cast<const void*>(&with_bias) : &total;
      ASSERT_EQ(std::memcmp(&y[r * it.n + c], want, 4), 0)
          << "row " << r << " column " << c << " of " << it.m << "x" << it.k << "x" << it.n;
    }
}

TEST(int8_product, every_sign_size_and_form) {
  std::mt19937 rng(5);
  std::vector<std::pair<std::string, Loop<Int8ProductArgs>>> loops;
  for (Isa isa : available_isas()) loops.emplace_back(isa_name(isa), int8_product(isa, ByteProducts::kPairs));
  for (ByteProducts bytes : {ByteProducts::kFours, ByteProducts::kTiles})
    if (bytes <= detect_cpu().bytes)
      loops.emplace_back(bytes == ByteProducts::kFours ? "vnni" : "amx", int8_product(Isa::kAvx512, bytes));
  const int64_t kSizes[][3] = {{1, 1, 1},   {1, 64, 4},    {1, 200, 513}, {2, 65, 3}, {5, 3, 1030}, {7, 130, 64},
                               {49, 64, 7}, {97, 70, 515}, {3, 10, 0},    {0, 5, 5},  {4, 0, 5},    {31, 66, 640}};
  for (const auto& [name, loop] : loops) {
    SCOPED_TRACE(name);
    for (const auto& size : kSizes)
      for (int bits = 0; bits < 32; bits++)
        ASSERT_NO_FATAL_FAILURE(check({size[0], size[1], size[2], (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0,
                                       (bits & 8) != 0, (bits & 16) != 0},
                                      loop, rng));
  }
}

// Sums of the largest products of more terms than 32 bits hold wrap.
TEST(int8_product, wraps) {
  int64_t k = 70000;
  std::vector<uint8_t> a(static_cast<size_t>(k), 255), b(static_cast<size_t>(k), 255);
  int32_t y = 0;
  Int8ProductArgs args;
  args.a = a.data(), args.b = b.data(), args.y = reinterpret_cast<uint8_t*>(&y);
  args.a_row = k, args.b_row = 1, args.y_row = 1, args.m = args.n = 1, args.k = k;
  for (Isa isa : available_isas()) {
    run_whole(int8_product(isa, ByteProducts::kPairs), args);
    EXPECT_EQ(static_cast<uint32_t>(y), static_cast<uint32_t>(int64_t{255} * 255 * k));
  }
}

}  // namespace
}  // namespace rlx::cpu
