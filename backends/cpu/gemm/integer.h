// SPDX-License-Identifier: Apache-2.0
// Products of integers of 32 and 64 bits. Sums wrap, so numbers with and without sign have the same bits.
#pragma once

#include "backends/cpu/gemm/gemm.h"

namespace rlx::cpu {

struct IntegerFns {
  Loop<MatmulSides<uint32_t>> product32;
  Loop<MatmulSides<uint64_t>> product64;
};
const IntegerFns& integer_fns(Isa isa);

}  // namespace rlx::cpu
