// SPDX-License-Identifier: Apache-2.0
// f32 to numbers of 8 or 16 bits and back: q represents (q - zero) * scale. Every instruction set gives the same bits.
// x consists of rows of n; there is one scale and zero per row, or per element of a row.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

struct AffineRows {
  int64_t rows = 0, n = 0;
  const float* scale = nullptr;
  const void* zero = nullptr;  // of the type of the numbers; null: 0
  int64_t channels = 1;        // row r has scale r % channels
  bool by_element = false;     // element i of each row has scale i
  int bits = 8;                // of a number: 8 or 16
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

// To u8, by the range of x with 0 in it. With `ranges` that of each piece is found first, by a loop of its own.
struct ValueRange {
  float lo, hi;
};
struct DynamicQuantizeArgs {
  const float* x = nullptr;
  int64_t n = 0;
  uint8_t* y = nullptr;
  float* scale = nullptr;
  uint8_t* zero = nullptr;
  ValueRange* ranges = nullptr;
};
inline constexpr int64_t kRangePiece = 16384;  // at least
constexpr Pieces range_pieces(int64_t n) {
  return cut(n, 1, kRangePiece, 64);
}

inline constexpr int kMaxPairDims = 8;

// y = quantize(real(a) + real(b)), or of their product, all of 8 bits with one scale and zero point each. The result is
// dense; an operand that is broadcast has strides of 0. The last stride of each is 0 or 1.
struct QuantizedPairArgs {
  struct Numbers {
    const float* scale = nullptr;
    const uint8_t* zero = nullptr;
    bool is_signed = false;
  };
  const uint8_t *a = nullptr, *b = nullptr;
  uint8_t* out = nullptr;
  int64_t n = 0;
  Numbers of_a, of_b, of_out;
  bool is_product = false;
  int rank = 1;  // 1 or more; the product of the dims is n
  int64_t dims[kMaxPairDims] = {}, a_strides[kMaxPairDims] = {}, b_strides[kMaxPairDims] = {};
};

// y[i] = table[x[i]], of 256 entries; x and y may be one.
struct ByteTableArgs {
  const uint8_t *x = nullptr, *table = nullptr;
  uint8_t* y = nullptr;
  int64_t n = 0;
};

struct QuantizeFns {
  Loop<QuantizeArgs> quantize;
  Loop<DequantizeArgs> dequantize;
  Loop<DynamicQuantizeArgs> ranges, dynamic;
  Loop<QuantizedPairArgs> pair;
  Loop<ByteTableArgs> table;
  Loop<ByteTableArgs> table_by_permutes;  // where CpuInfo::permutes_bytes; without `parts` in other instruction sets
};
const QuantizeFns& quantize_fns(Isa isa);

}  // namespace rlx::cpu
