// SPDX-License-Identifier: Apache-2.0
// Convolutions of 8-bit numbers, channels first, summed in wrapping i32, and the ops fused behind them. This is exact,
// so every instruction set gives the same bits.
#pragma once

#include "backends/cpu/gemm/conv.h"
#include "backends/cpu/gemm/int8.h"

namespace rlx::cpu {

// The packed form of [groups * filters, channels * taps]. For each filter: the sum of its numbers in i32; then, for
// every block of kFourBlock fours of channels, every tap, and every four of the block, four numbers, with zeros for
// missing channels. Packed numbers are signed: 128 is subtracted from unsigned ones. The form is the same for every
// instruction set.
inline constexpr int64_t kFourBlock = 16;
constexpr int64_t int8_filter_bytes(int64_t channels, int64_t taps) {
  return 4 + (channels + 3) / 4 * 4 * taps;
}
struct Int8FilterPackArgs {
  EightBit w;
  int64_t filters = 0, channels = 0, taps = 0;
  std::byte* packed = nullptr;
};
extern const Loop<Int8FilterPackArgs> kPackInt8Filters;  // one part is one filter

// total = conv(x - x_zero, w - w_zero) + add. Then y = total in i32; or, with a scale, y = total * scale + bias in f32,
// optionally through relu; or this divided by y_scale, rounded, plus y_zero, clamped to 8 bits.
struct Int8ConvArgs : ConvShape {
  const uint8_t* x = nullptr;  // [items, groups * channels, spatial]
  const std::byte* packed = nullptr;
  void* y = nullptr;  // [items, groups * filters, places]
  bool x_signed = false, w_signed = false, y_signed = false;
  const uint8_t *x_zero = nullptr, *w_zero = nullptr;  // null: 0
  const int32_t* add = nullptr;                        // one per filter; so may be w_zero and scale
  const float *scale = nullptr, *bias = nullptr;
  bool w_zero_by_filter = false, scale_by_filter = false, relu = false;
  const float* y_scale = nullptr;
  const uint8_t* y_zero = nullptr;
};

// Whether the kernel takes windows of these sizes, for any number of places.
bool fits_int8_conv(const ConvShape& shape);

// Only AVX-512 has more than pairs.
Loop<Int8ConvArgs> int8_conv(Isa isa, ByteProducts bytes);

}  // namespace rlx::cpu
