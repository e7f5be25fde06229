// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit numbers, summed in i32, which wraps: exact, so every instruction set gives the same bits. Strides
// count elements.
#pragma once

#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

// The packed form of a [k, n] matrix: panels of kIntegerWidth columns, one after another. A panel is the sum of each
// column in i32, then for every four terms the four numbers of each column; what lies beyond k and n is zero. Numbers
// are signed: of unsigned ones 128 is taken off. It is the same for every instruction set.
inline constexpr int64_t kIntegerWidth = 64;
constexpr int64_t integer_panel_bytes(int64_t k) {
  return kIntegerWidth * (4 + (k + 3) / 4 * 4);
}
constexpr int64_t integer_packed_bytes(int64_t k, int64_t n) {
  return (n + kIntegerWidth - 1) / kIntegerWidth * integer_panel_bytes(k);
}

struct EightBit {  // numbers of one sign
  const uint8_t* data = nullptr;
  bool is_signed = false;
};

struct IntegerPackArgs {
  EightBit b;
  int64_t k = 0, n = 0, k_stride = 0, n_stride = 0;
  std::byte* packed = nullptr;
};
extern const Loop<IntegerPackArgs> kPackIntegers;  // one part is one panel

// total = (a - a_zero) * (b - b_zero); y = total, or float(total) * scale + bias where there is a scale.
struct IntegerProductArgs : MatmulSides<uint8_t> {  // y: as bytes, its strides in elements of 4 bytes
  bool a_signed = false, b_signed = false;
  const std::byte* packed = nullptr;  // b in its packed form, of one matrix; null: b as it lies
  const int32_t* a_zero = nullptr;    // one; null: 0
  const int32_t* b_zero = nullptr;    // one, or one for each column
  bool b_zero_by_column = false;
  const float* scale = nullptr;  // one, or one for each column
  bool scale_by_column = false;
  const float* bias = nullptr;  // [n]; with a scale only
};

// `vnni`: the machine has the instructions of AVX512_VNNI.
Loop<IntegerProductArgs> integer_product(Isa isa, bool vnni);

}  // namespace rlx::cpu
