// SPDX-License-Identifier: Apache-2.0
// The products of 8-bit numbers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/integer.h"

#include <cstddef>
#include <cstring>

#define RLX_KERNELS "backends/cpu/gemm/integer.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

void pack_integers(const EightBit& b, int64_t k, int64_t n, int64_t k_stride, int64_t n_stride, std::byte* packed) {
  const uint8_t flip = b.is_signed ? 0 : 0x80;
  for (int64_t first = 0; first < n; first += kIntegerWidth, packed += integer_panel_bytes(k)) {
    std::memset(packed, 0, static_cast<size_t>(integer_panel_bytes(k)));
    int32_t sums[kIntegerWidth] = {};
    int64_t columns = n - first < kIntegerWidth ? n - first : kIntegerWidth;
    auto* fours = reinterpret_cast<int8_t*>(packed) + 4 * kIntegerWidth;
    for (int64_t t = 0; t < k; t++)
      for (int64_t c = 0; c < columns; c++) {
        auto number = static_cast<int8_t>(b.data[t * k_stride + (first + c) * n_stride] ^ flip);
        fours[t / 4 * 4 * kIntegerWidth + 4 * c + t % 4] = number;
        sums[c] += number;
      }
    std::memcpy(packed, sums, sizeof sums);
  }
}

Loop<IntegerProductArgs> integer_product(Isa isa, bool vnni) {
  if (isa == Isa::kAvx512) return vnni ? avx512::kIntegerByFours : avx512::kIntegerByPairs;
  return isa == Isa::kAvx2 ? avx2::kIntegerByPairs : baseline::kIntegerByPairs;
}

}  // namespace rlx::cpu
