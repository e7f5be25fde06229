// SPDX-License-Identifier: Apache-2.0
// f32 to numbers of 8 or 16 bits and back: q stands for (q - zero) * scale. Every instruction set gives the same bits.
// x lies as rows of n: scale and zero are of a row, or of an element of it.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

struct AffineRows {
  int64_t rows = 0, n = 0;
  const float* scale = nullptr;
  const void* zero = nullptr;  // as the numbers are; null: 0
  int64_t channels = 1;        // of the rows: row r has the scale r % channels
  bool by_element = false;     // element i of each row has the scale i
  int bits = 8;                // of a number, or 16
  bool is_signed = false;
};

// y = round(x / scale) + zero, clamped; a NaN gives 0.
struct QuantizeArgs : AffineRows {
  const float* x = nullptr;
  void* y = nullptr;
};

struct DequantizeArgs : AffineRows {
  const void* x = nullptr;
  float* y = nullptr;
};

// To u8, by the range of x with 0 in it. One part.
struct DynamicQuantizeArgs {
  const float* x = nullptr;
  int64_t n = 0;
  uint8_t* y = nullptr;
  float* scale = nullptr;
  uint8_t* zero = nullptr;
};

struct QuantizeFns {
  Loop<QuantizeArgs> quantize;
  Loop<DequantizeArgs> dequantize;
  Loop<DynamicQuantizeArgs> dynamic;
};
const QuantizeFns& quantize_fns(Isa isa);

}  // namespace rlx::cpu
