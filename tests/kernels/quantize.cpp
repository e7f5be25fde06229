// SPDX-License-Identifier: Apache-2.0
// Quantisation against its definition, every bit on every instruction set.
#include "backends/cpu/kernels/quantize.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

uint8_t quantized(float x, float scale, float zero, bool is_signed) {
  volatile float ratio = x / scale;
  float y = std::nearbyint(ratio) + zero;
  if (std::isnan(y)) return 0;
  y = std::fmin(std::fmax(y, is_signed ? -128.0f : 0.0f), is_signed ? 127.0f : 255.0f);
  return static_cast<uint8_t>(static_cast<int>(y));
}

float zero_of(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<float>(static_cast<int8_t>(byte)) : static_cast<float>(byte);
}

struct Shape {
  int64_t outer, channels, inner;
};

void check(const Shape& shape, bool is_signed, Isa isa, std::mt19937& rng) {
  int64_t count = shape.outer * shape.channels * shape.inner;
  Guarded x = Guarded::random(count, rng, -9, 9), scale = Guarded::random(shape.channels, rng, 0.01f, 0.1f);
  if (count > 3) x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY, x[3] = 1e38f;
  std::vector<uint8_t> zero(static_cast<size_t>(shape.channels)), y(static_cast<size_t>(count) + 1, 7);
  for (uint8_t& it : zero) it = static_cast<uint8_t>(rng());
  QuantizeArgs args;
  args.scale = scale.data(), args.zero = zero.data(), args.is_signed = is_signed;
  args.x = x.data(), args.y = y.data();
  args.by_element = shape.inner == 1;
  args.rows = args.by_element ? shape.outer : shape.outer * shape.channels;
  args.n = args.by_element ? shape.channels : shape.inner;
  args.channels = args.by_element ? 1 : shape.channels;
  run_backwards(quantize_fns(isa).quantize, args);
  ASSERT_EQ(y[static_cast<size_t>(count)], 7);
  Guarded back(count);
  DequantizeArgs undo;
  static_cast<AffineRows&>(undo) = args;
  undo.x = y.data(), undo.y = back.data();
  run_backwards(quantize_fns(isa).dequantize, undo);
  ASSERT_TRUE(back.guards_intact());
  for (int64_t i = 0; i < count; i++) {
    auto channel = static_cast<size_t>(i / shape.inner % shape.channels);
    float z = zero_of(zero[channel], is_signed), s = scale[static_cast<int64_t>(channel)];
    ASSERT_EQ(y[static_cast<size_t>(i)], quantized(x[i], s, z, is_signed)) << i << " is " << x[i];
    ASSERT_EQ(back[i], (zero_of(y[static_cast<size_t>(i)], is_signed) - z) * s) << i;
  }
}

TEST(quantize, every_shape_and_sign) {
  std::mt19937 rng(3);
  for (Isa isa : available_isas())
    for (Shape shape : {Shape{1, 1, 1}, Shape{1, 1, 40001}, Shape{3, 5, 7}, Shape{2, 3, 20000}, Shape{300, 17, 1},
                        Shape{2, 20000, 1}, Shape{0, 3, 4}, Shape{3, 4, 0}, Shape{5, 1, 33}})
      for (bool is_signed : {false, true}) ASSERT_NO_FATAL_FAILURE(check(shape, is_signed, isa, rng));
}

// Scales and numbers below 2^-126 count, and 16 bits are written and read.
template <class T>
void check_small(Isa isa, std::mt19937& rng) {
  constexpr int64_t kCount = 77;
  Guarded x(kCount), back(kCount);
  for (int64_t i = 0; i < kCount; i++) x[i] = static_cast<float>(static_cast<int>(rng() % 90000) - 45000) * 1e-41f;
  float scale = 1e-41f;
  T zero = 5;
  std::vector<T> y(kCount + 1, 7);
  QuantizeArgs args;
  args.rows = 1, args.n = kCount, args.scale = &scale, args.zero = &zero;
  args.bits = 8 * sizeof(T), args.is_signed = std::is_signed_v<T>;
  args.x = x.data(), args.y = y.data();
  run_backwards(quantize_fns(isa).quantize, args);
  DequantizeArgs undo;
  static_cast<AffineRows&>(undo) = args;
  undo.x = y.data(), undo.y = back.data();
  run_backwards(quantize_fns(isa).dequantize, undo);
  ASSERT_EQ(y[kCount], 7);
  for (int64_t i = 0; i < kCount; i++) {
    volatile float ratio = x[i] / scale;
    float lo = std::numeric_limits<T>::min(), hi = std::numeric_limits<T>::max();
    float want = std::fmin(std::fmax(std::nearbyint(ratio) + 5, lo), hi);
    ASSERT_EQ(static_cast<float>(y[static_cast<size_t>(i)]), want);
    ASSERT_EQ(back[i], (want - 5) * scale);
  }
}

TEST(quantize, small_scales_and_all_widths) {
  std::mt19937 rng(4);
  for (Isa isa : available_isas()) {
    check_small<uint8_t>(isa, rng);
    check_small<int8_t>(isa, rng);
    check_small<uint16_t>(isa, rng);
    check_small<int16_t>(isa, rng);
  }
}

// Quotients around the middles of two numbers, where only a division rounds as the definition does.
TEST(quantize, quotients_close_to_the_middle_of_two_numbers) {
  std::mt19937 rng(6);
  for (Isa isa : available_isas())
    for (float scale : {0.1f, 0.3f, 1.0f, 3e-31f, 7e29f, 1.7e-30f, 2e30f, INFINITY, NAN, 0.0f, -0.7f}) {
      constexpr int64_t kCount = 4096;
      Guarded x(kCount);
      for (int64_t i = 0; i < kCount; i++) {
        x[i] = (static_cast<float>(static_cast<int>(rng() % 600) - 300) + 0.5f) * scale;
        for (uint32_t step = rng() % 4; step > 0; step--) x[i] = std::nextafter(x[i], rng() % 2 ? INFINITY : -INFINITY);
      }
      uint8_t zero = 100;
      std::vector<uint8_t> y(kCount);
      QuantizeArgs args;
      args.rows = 1, args.n = kCount, args.scale = &scale, args.zero = &zero, args.x = x.data(), args.y = y.data();
      run_whole(quantize_fns(isa).quantize, args);
      for (int64_t i = 0; i < kCount; i++)
        ASSERT_EQ(y[static_cast<size_t>(i)], quantized(x[i], scale, zero, false)) << x[i] << " / " << scale;
    }
}

void check_dynamic(const Guarded& x, Isa isa) {
  float lo = 0, hi = 0, scale;
  bool has_nan = false;
  for (int64_t i = 0; i < x.size(); i++)
    has_nan |= std::isnan(x[i]), lo = std::fmin(lo, x[i]), hi = std::fmax(hi, x[i]);
  if (has_nan) lo = hi = NAN;
  volatile float width = hi == lo ? 1 : hi - lo;
  volatile float want_scale = width / 255;
  uint8_t zero = 1, want_zero = quantized(0.0f - lo, want_scale, 0, false);
  std::vector<uint8_t> y(static_cast<size_t>(x.size()) + 1, 7);
  DynamicQuantizeArgs args{x.data(), x.size(), y.data(), &scale, &zero};
  std::vector<ValueRange> ranges(static_cast<size_t>(kManyParts));
  if (range_pieces(x.size()).count > 1) {
    args.ranges = ranges.data();
    run_backwards(quantize_fns(isa).ranges, args);
  }
  run_backwards(quantize_fns(isa).dynamic, args);
  if (has_nan)
    ASSERT_TRUE(std::isnan(scale));
  else
    ASSERT_EQ(scale, want_scale);
  ASSERT_EQ(zero, want_zero);
  ASSERT_EQ(y[static_cast<size_t>(x.size())], 7);
  for (int64_t i = 0; i < x.size(); i++)
    ASSERT_EQ(y[static_cast<size_t>(i)], quantized(x[i], scale, zero, false)) << i << " is " << x[i];
}

TEST(quantize, dynamic_ranges_equal_the_formula) {
  std::mt19937 rng(4);
  for (Isa isa : available_isas())
    for (int64_t n : {0, 1, 3, 15, 16, 17, 100, 1000, 32768, 100001}) {
      for (auto [lo, hi] : {std::pair(-3.0f, 5.0f), {2.0f, 5.0f}, {-5.0f, -2.0f}, {0.0f, 0.0f}, {-1e-40f, 1e-40f}})
        ASSERT_NO_FATAL_FAILURE(check_dynamic(Guarded::random(n, rng, lo, hi), isa));
      for (float special : {NAN, INFINITY, -INFINITY, 3e38f}) {
        Guarded x = Guarded::random(n, rng, -1, 1);
        if (n > 0) x[n - 1] = special;
        ASSERT_NO_FATAL_FAILURE(check_dynamic(x, isa));
      }
    }
}

// Sums and products of all pairs of bytes.
void check_pair(int signs, bool is_product, Isa isa, std::mt19937& rng) {
  constexpr int64_t kCount = 256 * 256;
  std::vector<uint8_t> in[2], y(kCount + 1, 7), zeros(3);
  for (int64_t i = 0; i < kCount; i++) {
    in[0].push_back(static_cast<uint8_t>(i));
    in[1].push_back(static_cast<uint8_t>(i >> 8));
  }
  std::uniform_real_distribution<float> some(0.01f, 0.05f);
  float scales[3] = {some(rng), some(rng), is_product ? 0.03f : 0.06f};
  for (uint8_t& it : zeros) it = static_cast<uint8_t>(rng());
  bool is_signed[3] = {(signs & 1) != 0, (signs & 2) != 0, (signs & 4) != 0};
  auto numbers = [&](size_t i) { return QuantizedPairArgs::Numbers{&scales[i], &zeros[i], is_signed[i]}; };
  QuantizedPairArgs args{in[0].data(), in[1].data(), y.data(), kCount, numbers(0), numbers(1), numbers(2), is_product};
  args.a_strides[0] = args.b_strides[0] = 1;
  for (int64_t n : {kCount, kCount - 5, int64_t{3}, int64_t{0}}) {
    args.n = args.dims[0] = n;
    run_backwards(quantize_fns(isa).pair, args);
    for (size_t i = 0; i < static_cast<size_t>(n); i++) {
      float real[2];
      for (size_t k : {0, 1}) real[k] = (zero_of(in[k][i], is_signed[k]) - zero_of(zeros[k], is_signed[k])) * scales[k];
      volatile float x = is_product ? real[0] * real[1] : real[0] + real[1];
      ASSERT_EQ(y[i], quantized(x, scales[2], zero_of(zeros[2], is_signed[2]), is_signed[2]))
          << real[0] << ", " << real[1];
    }
    ASSERT_EQ(y[static_cast<size_t>(kCount)], 7);
  }
}

TEST(quantize, pairs_of_all_signs) {
  std::mt19937 rng(7);
  for (Isa isa : available_isas())
    for (int signs = 0; signs < 8; signs++)
      for (bool is_product : {false, true}) ASSERT_NO_FATAL_FAILURE(check_pair(signs, is_product, isa, rng));
}

// Operands of dims [3, channels, inner]: strides of 0 broadcast.
void check_broadcast(int64_t inner, std::array<int64_t, 3> a_strides, std::array<int64_t, 3> b_strides,
                     std::array<float, 3> scales, Isa isa, std::mt19937& rng) {
  constexpr int64_t kOuter = 3, kChannels = 5;
  const int64_t n = kOuter * kChannels * inner;
  std::vector<uint8_t> a(static_cast<size_t>(n) + 1), b(a.size()), y(a.size(), 7), zeros{9, 200, 100};
  for (auto* numbers : {&a, &b})
    for (uint8_t& it : *numbers) it = static_cast<uint8_t>(rng());
  auto of = [&](size_t i) { return QuantizedPairArgs::Numbers{&scales[i], &zeros[i], i == 1}; };
  QuantizedPairArgs args{a.data(), b.data(), y.data(), n, of(0), of(1), of(2), false, 3, {kOuter, kChannels, inner}};
  std::copy(a_strides.begin(), a_strides.end(), args.a_strides);
  std::copy(b_strides.begin(), b_strides.end(), args.b_strides);
  run_backwards(quantize_fns(isa).pair, args);
  for (int64_t i = 0; i < n; i++) {
    const int64_t at[] = {i / (kChannels * inner), i / inner % kChannels, i % inner};
    int64_t of_a = 0, of_b = 0;
    for (size_t d = 0; d < 3; d++) of_a += at[d] * a_strides[d], of_b += at[d] * b_strides[d];
    volatile float left = (zero_of(a[static_cast<size_t>(of_a)], false) - 9) * scales[0];
    volatile float right = (zero_of(b[static_cast<size_t>(of_b)], true) - zero_of(200, true)) * scales[1];
    volatile float sum = left + right;
    ASSERT_EQ(y[static_cast<size_t>(i)], quantized(sum, scales[2], 100, false)) << i << " of " << inner;
  }
  ASSERT_EQ(y[static_cast<size_t>(n)], 7);
}

TEST(quantize, pairs_of_broadcast_operands) {
  std::mt19937 rng(8);
  constexpr float kTiny = 0x1p-140f, kHuge = 0x1p120f;
  for (Isa isa : available_isas())
    for (int64_t inner : {0, 1, 7, 64, 131, 5000})
      for (std::array<float, 3> scales : {std::array{0.01f, 0.03f, 0.02f},
                                          {0.5f, 0.5f, 1.0f},
                                          {1.0f, kHuge, kTiny},
                                          {kTiny, kTiny, kTiny},
                                          {INFINITY, 1.0f, 1.0f},
                                          {1.0f, NAN, 1.0f},
                                          {1.0f, 1.0f, NAN},
                                          {-0.1f, 0.1f, -0.3f},
                                          {1.0f, 1.0f, 0.0f}}) {
        std::array<int64_t, 3> dense{5 * inner, inner, 1}, channels{0, 1, 0}, row{0, 0, 1};
        ASSERT_NO_FATAL_FAILURE(check_broadcast(inner, dense, channels, scales, isa, rng));
        ASSERT_NO_FATAL_FAILURE(check_broadcast(inner, channels, dense, scales, isa, rng));
        ASSERT_NO_FATAL_FAILURE(check_broadcast(inner, dense, row, scales, isa, rng));
        ASSERT_NO_FATAL_FAILURE(check_broadcast(inner, channels, row, scales, isa, rng));
        ASSERT_NO_FATAL_FAILURE(check_broadcast(inner, {0, 0, 0}, {0, 0, 0}, scales, isa, rng));
      }
}

void check_table(const Loop<ByteTableArgs>& loop, int64_t n, std::mt19937& rng) {
  uint8_t table[256];
  for (uint8_t& it : table) it = static_cast<uint8_t>(rng());
  std::vector<uint8_t> x(static_cast<size_t>(n) + 1), y(x.size(), 7);
  for (size_t i = 0; i < x.size(); i++) x[i] = static_cast<uint8_t>(i * 7);
  ByteTableArgs args{x.data(), table, y.data(), n};
  run_backwards(loop, args);
  std::vector<uint8_t> in_place = x;
  args.x = args.y = in_place.data();
  loop.run(args, 0, loop.parts(args));
  for (size_t i = 0; i < static_cast<size_t>(n); i++) {
    ASSERT_EQ(y[i], table[x[i]]) << i;
    ASSERT_EQ(in_place[i], y[i]) << i;
  }
  ASSERT_EQ(y.back(), 7);
  ASSERT_EQ(in_place.back(), x.back());
}

TEST(quantize, tables_of_bytes) {
  std::mt19937 rng(9);
  for (Isa isa : available_isas())
    for (int64_t n : {0, 1, 7, 8, 9, 63, 64, 65, 256, 1000, 65536, 131077}) {
      ASSERT_NO_FATAL_FAILURE(check_table(quantize_fns(isa).table, n, rng));
      if (!quantize_fns(isa).table_by_permutes.parts || !detect_cpu().permutes_bytes) continue;
      ASSERT_NO_FATAL_FAILURE(check_table(quantize_fns(isa).table_by_permutes, n, rng));
    }
}

}  // namespace
}  // namespace rlx::cpu
