// SPDX-License-Identifier: Apache-2.0
// Products with weights of few bits: y[i, j] = bias[j] + the sum over t of x[i, t] * w[j, t]. A weight is w[j, t] = (q
// - zero) * scale, where q is number t, of `bits` bits, in row j of `packed`, and zero and scale are those of its block
// of terms.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

struct NbitsProductArgs {
  const float* x = nullptr;              // [m, k]
  const uint8_t* packed = nullptr;       // n rows of whole blocks; the first number of a byte is in its low bits
  const float* scale = nullptr;          // [n, blocks]
  const float* zero = nullptr;           // likewise
  const uint8_t* packed_zero = nullptr;  // n rows of numbers of `bits` bits, in whole bytes; without either: the middle
  const float* bias = nullptr;           // [n]; null: none
  float* y = nullptr;                    // [m, n]
  int64_t m = 0, n = 0, k = 0;
  int64_t block = 32;  // terms; a power of 2, at least 16
  int bits = 4;        // 2, 4 or 8
};

struct NbitsFns {
  Loop<NbitsProductArgs> product;
};
const NbitsFns& nbits_fns(Isa isa);

}  // namespace rlx::cpu
