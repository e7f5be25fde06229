// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers, summed in wrapping i32. This is exact, so every instruction set gives the same bits.
// Strides count elements.
#pragma once

#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

// The packed form of a [k, n] matrix: panels of kInt8Width columns, one after another. A panel is the sum of each
// column in i32, then for every four terms the four numbers of each column; numbers beyond k and n are zero. Packed
// numbers are signed: 128 is subtracted from unsigned ones. It is the same for every instruction set.
inline constexpr int64_t kInt8Width = 64;
constexpr int64_t int8_panel_bytes(int64_t k) {
  return kInt8Width * (4 + (k + 3) / 4 * 4);
}
constexpr int64_t int8_packed_bytes(int64_t k, int64_t n) {
  return ceil_div(n, kInt8Width) * int8_panel_bytes(k);
}

struct EightBit {  // numbers of one sign
  const uint8_t* data = nullptr;
  bool is_signed = false;
};

struct Int8PackArgs {
  EightBit b;
  int64_t k = 0, n = 0, k_stride = 0, n_stride = 0;
  std::byte* packed = nullptr;
};
extern const Loop<Int8PackArgs> kPackInt8;  // one part is one panel

// total = (a - a_zero) * (b - b_zero); y = total, or with a scale y = float(total) * scale + bias.
struct Int8ProductArgs : MatmulSides<uint8_t> {  // y is stored as bytes; its strides count elements of 4 bytes
  bool a_signed = false, b_signed = false;
  const std::byte* packed = nullptr;  // b in its packed form, a single matrix; null: read b in place
  const int32_t* a_zero = nullptr;    // one; null: 0
  const int32_t* b_zero = nullptr;    // one, or one for each column
  bool b_zero_by_column = false;
  const float* scale = nullptr;  // one, or one for each column
  bool scale_by_column = false;
  const float* bias = nullptr;  // [n]; only with a scale
};

// Only AVX-512 has more than pairs.
Loop<Int8ProductArgs> int8_product(Isa isa, ByteProducts bytes);

}  // namespace rlx::cpu
