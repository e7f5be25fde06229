// SPDX-License-Identifier: Apache-2.0
// The products of 8-bit numbers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/integer.h"

#include <cstddef>
#include <cstring>

#define RLX_KERNELS "backends/cpu/gemm/integer.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

static int64_t pack_integers_parts(const IntegerPackArgs& p) {
  return ceil_div(p.n, kIntegerWidth);
}

static void pack_integers_run(const IntegerPackArgs& p, int64_t begin, int64_t end) {
  const uint8_t flip = p.b.is_signed ? 0 : 0x80;
  for (int64_t part = begin; part < end; part++) {
    std::byte* packed = p.packed + part * integer_panel_bytes(p.k);
    std::memset(packed, 0, static_cast<size_t>(integer_panel_bytes(p.k)));
    int32_t sums[kIntegerWidth] = {};
    int64_t first = part * kIntegerWidth;
    int64_t columns = p.n - first < kIntegerWidth ? p.n - first : kIntegerWidth;
    auto* fours = reinterpret_cast<int8_t*>(packed) + 4 * kIntegerWidth;
    for (int64_t t = 0; t < p.k; t++)
      for (int64_t c = 0; c < columns; c++) {
        auto number = static_cast<int8_t>(p.b.data[t * p.k_stride + (first + c) * p.n_stride] ^ flip);
        fours[t / 4 * 4 * kIntegerWidth + 4 * c + t % 4] = number;
        sums[c] += number;
      }
    std::memcpy(packed, sums, sizeof sums);
  }
}

const Loop<IntegerPackArgs> kPackIntegers = {pack_integers_parts, pack_integers_run};

Loop<IntegerProductArgs> integer_product(Isa isa, ByteProducts bytes) {
  if (isa == Isa::kAvx512) return avx512::kIntegerProducts[static_cast<int>(bytes)];
  return isa == Isa::kAvx2 ? avx2::kIntegerByPairs : baseline::kIntegerByPairs;
}

}  // namespace rlx::cpu
