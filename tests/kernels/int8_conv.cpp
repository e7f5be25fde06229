// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit numbers against plain loops: every bit, on every instruction set.
#include "backends/cpu/gemm/int8_conv.h"

#include "guarded.h"

namespace rlx::cpu {
namespace {

struct Problem {
  ConvShape shape;
  bool x_signed, w_signed;
  int end;  // 0: i32, 1: f32, 2: u8, 3: i8
};

std::vector<uint8_t> noise(int64_t count, std::mt19937& rng) {
  std::vector<uint8_t> bytes(static_cast<size_t>(count));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(rng());
  return bytes;
}

int32_t value(uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<int8_t>(byte) : byte;
}

int32_t plain(const Int8ConvArgs& p, const uint8_t* w, int64_t item, int64_t filter, int64_t place) {
  int64_t out[3] = {place / (p.axes[1].out * p.axes[2].out), place / p.axes[2].out % p.axes[1].out,
                    place % p.axes[2].out};
  uint32_t sum = 0;
  for (int64_t c = 0; c < p.channels; c++)
    for (int64_t tap = 0; tap < p.taps(); tap++) {
      int64_t taps[3] = {tap / (p.axes[1].taps * p.axes[2].taps), tap / p.axes[2].taps % p.axes[1].taps,
                         tap % p.axes[2].taps};
      int64_t from = (item * p.groups + filter / p.filters) * p.channels + c;
      bool inside = true;
      for (int i = 0; i < 3; i++) {
        int64_t at = out[i] * p.axes[i].stride + taps[i] * p.axes[i].dilation - p.axes[i].lo;
        inside &= at >= 0 && at < p.axes[i].size;
        from = from * p.axes[i].size + at;
      }
      if (!inside) continue;
      int32_t left = value(p.x[from], p.x_signed) - (p.x_zero ? value(*p.x_zero, p.x_signed) : 0);
      int32_t right = value(w[(filter * p.channels + c) * p.taps() + tap], p.w_signed) -
                      (p.w_zero ? value(p.w_zero[p.w_zero_by_filter ? filter : 0], p.w_signed) : 0);
      sum += static_cast<uint32_t>(left * right);
    }
  return static_cast<int32_t>(sum + static_cast<uint32_t>(p.add ? p.add[filter] : 0));
}

void expect_place(const Int8ConvArgs& p, int32_t total, int64_t filter, int64_t at) {
  if (!p.scale) {
    ASSERT_EQ(static_cast<const int32_t*>(p.y)[at], total);
    return;
  }
  volatile float real = static_cast<float>(total) * p.scale[p.scale_by_filter ? filter : 0];
  if (p.bias) real = real + p.bias[filter];
  if (p.relu && real < 0) real = 0;
  if (!p.y_scale) {
    ASSERT_EQ(static_cast<const float*>(p.y)[at], real);
    return;
  }
  volatile float ratio = real / *p.y_scale;
  float y = std::nearbyint(ratio) + static_cast<float>(value(*p.y_zero, p.y_signed));
  y = std::fmin(std::fmax(y, p.y_signed ? -128.0f : 0.0f), p.y_signed ? 127.0f : 255.0f);
  ASSERT_EQ(value(static_cast<const uint8_t*>(p.y)[at], p.y_signed), static_cast<int>(y));
}

void check(const Problem& it, const Loop<Int8ConvArgs>& loop, bool zeros, std::mt19937& rng) {
  Int8ConvArgs args;
  static_cast<ConvShape&>(args) = it.shape;
  for (ConvAxis& axis : args.axes)
    axis.out = std::max<int64_t>(0, (axis.size + 2 * axis.lo - (axis.taps - 1) * axis.dilation - 1) / axis.stride + 1);
  ASSERT_TRUE(fits_int8_conv(args));
  int64_t all = args.groups * args.filters, count = args.items * all * args.places();
  auto x = noise(args.items * args.groups * args.channels * args.plane(), rng), w = noise(all * args.terms(), rng);
  auto w_zero = noise(all, rng), one = noise(2, rng);
  std::vector<int32_t> add(static_cast<size_t>(all));
  std::vector<float> scale(static_cast<size_t>(all)), bias(static_cast<size_t>(all));
  for (size_t i = 0; i < add.size(); i++) {
    add[i] = static_cast<int32_t>(rng() % 100000) - 50000;
    scale[i] = static_cast<float>(1 + rng() % 100) / 1e5f;
    bias[i] = static_cast<float>(rng() % 100) - 50;
  }
  std::vector<std::byte> packed(static_cast<size_t>(all * int8_filter_bytes(args.channels, args.taps())));
  Int8FilterPackArgs pack{{w.data(), it.w_signed}, all, args.channels, args.taps(), packed.data()};
  kPackInt8Filters.run(pack, 0, kPackInt8Filters.parts(pack));
  Guarded y(it.end < 2 ? count : (count + 3) / 4);
  float y_scale = 0.37f;
  args.x = x.data(), args.packed = packed.data(), args.y = y.data();
  args.x_signed = it.x_signed, args.w_signed = it.w_signed, args.y_signed = it.end == 3;
  if (zeros) args.x_zero = one.data(), args.w_zero = w_zero.data(), args.w_zero_by_filter = true, args.add = add.data();
  if (it.end > 0) args.scale = scale.data(), args.scale_by_filter = true, args.relu = zeros;
  if (it.end > 0 && !zeros) args.bias = bias.data();
  if (it.end > 1) args.y_scale = &y_scale, args.y_zero = one.data() + 1;
  run_backwards(loop, args);
  ASSERT_TRUE(y.guards_intact());
  for (int64_t at = 0; at < count; at++) {
    int64_t filter = at / args.places() % all, item = at / args.places() / all;
    ASSERT_NO_FATAL_FAILURE(expect_place(args, plain(args, w.data(), item, filter, at % args.places()), filter, at))
        << "place " << at % args.places() << " of filter " << filter << ", end " << it.end;
  }
}

ConvShape shape(int64_t groups, int64_t channels, int64_t filters, ConvAxis y, ConvAxis x, ConvAxis z = {}) {
  return {.items = 2, .groups = groups, .channels = channels, .filters = filters, .axes = {z, y, x}};
}
ConvAxis axis(int64_t size, int64_t taps, int64_t stride = 1, int64_t lo = 0, int64_t dilation = 1) {
  return {.size = size, .taps = taps, .stride = stride, .dilation = dilation, .lo = lo};
}

TEST(int8_conv, every_form_of_window_sign_and_end) {
  std::mt19937 rng(7);
  std::vector<std::pair<std::string, Loop<Int8ConvArgs>>> loops;
  for (Isa isa : available_isas()) loops.emplace_back(isa_name(isa), int8_conv(isa, ByteProducts::kPairs));
  for (ByteProducts bytes : {ByteProducts::kFours, ByteProducts::kTiles})
    if (bytes <= detect_cpu().bytes)
      loops.emplace_back(bytes == ByteProducts::kFours ? "vnni" : "amx", int8_conv(Isa::kAvx512, bytes));
  const ConvShape kShapes[] = {
      shape(1, 5, 7, axis(9, 3, 1, 1), axis(11, 3, 1, 1)),
      shape(1, 64, 70, axis(1, 1), axis(300, 1)),
      shape(1, 700, 3, axis(5, 3, 1, 1), axis(5, 3, 1, 1)),
      shape(1, 3, 16, axis(33, 7, 2, 3), axis(37, 7, 2, 3)),
      shape(3, 8, 10, axis(10, 3, 2, 1), axis(14, 3, 2, 1)),
      shape(2, 4, 2, axis(12, 3, 3, 0, 2), axis(40, 2, 3, 1, 3)),
      shape(6, 1, 1, axis(20, 3, 1, 1), axis(23, 3, 1, 1)),
      shape(19, 1, 1, axis(7, 3, 1, 1), axis(9, 3, 1, 1)),  // planes along the lanes
      shape(9, 1, 1, axis(14, 5, 2, 2), axis(13, 3, 2, 1, 2)),
      shape(5, 1, 2, axis(20, 3, 2, 1), axis(23, 5, 2, 2)),
      shape(2, 3, 6, axis(7, 3, 1, 1), axis(700, 3, 1, 1)),
      shape(2, 2, 5, axis(6, 2, 1, 0), axis(9, 3, 3, 1), axis(5, 3, 2, 1)),
      shape(1, 9, 5, axis(6, 2, 1, 0), axis(9, 3, 1, 1), axis(5, 2, 1, 1)),
      shape(1, 132, 37, axis(5, 3, 1, 1), axis(5, 3, 1, 1)),  // blocks of fours, whole and not
      shape(1, 40, 24, axis(9, 1), axis(9, 1)),
      shape(1, 76, 5, axis(3, 3), axis(15, 3, 1, 1), axis(15, 3, 1, 1)),  // chunks of less than a block
      shape(1, 4, 0, axis(4, 1), axis(4, 1)),
      shape(1, 0, 4, axis(4, 1), axis(4, 1)),
      shape(1, 6, 4, axis(0, 1), axis(4, 1)),
  };
  for (const auto& [name, loop] : loops) {
    SCOPED_TRACE(name);
    int end = 0;
    for (const ConvShape& it : kShapes)
      for (bool x_signed : {false, true})
        for (bool w_signed : {false, true})
          for (bool zeros : {false, true})
            ASSERT_NO_FATAL_FAILURE(check({it, x_signed, w_signed, end++ % 4}, loop, zeros, rng))
                << it.channels << " channels, " << it.filters << " filters";
  }
}

// Of one place the rows of a copy would be empty, and no place would fit.
TEST(int8_conv, takes_no_windows_without_taps) {
  for (int64_t channels : {1, 8}) {
    EXPECT_FALSE(fits_int8_conv(shape(1, channels, 2, axis(5, 3), axis(5, 3), axis(5, 0))));
    EXPECT_FALSE(fits_int8_conv(shape(1, channels, 2, axis(5, 0), axis(5, 3))));
    EXPECT_FALSE(fits_int8_conv(shape(1, channels, 2, axis(5, 3), axis(5, 0))));
  }
}

}  // namespace
}  // namespace rlx::cpu
