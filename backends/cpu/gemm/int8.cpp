// SPDX-License-Identifier: Apache-2.0
// The products of 8-bit numbers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/int8.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#define RLX_KERNELS "backends/cpu/gemm/int8.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

static int64_t pack_int8_parts(const Int8PackArgs& p) {
  return ceil_div(p.n, kInt8Width);
}

static void pack_int8_run(const Int8PackArgs& p, int64_t begin, int64_t end) {
  const uint8_t flip = p.b.is_signed ? 0 : 0x80;
  for (int64_t part = begin; part < end; part++) {
    std::byte* packed = p.packed + part * int8_panel_bytes(p.k);
    std::memset(packed, 0, static_cast<size_t>(int8_panel_bytes(p.k)));
    int32_t sums[kInt8Width] = {};
    int64_t first = part * kInt8Width;
    int64_t columns = std::min(p.n - first, kInt8Width);
    auto* fours = reinterpret_cast<int8_t*>(packed) + 4 * kInt8Width;
    for (int64_t t = 0; t < p.k; t++)
      for (int64_t c = 0; c < columns; c++) {
        auto number = static_cast<int8_t>(p.b.data[t * p.k_stride + (first + c) * p.n_stride] ^ flip);
        fours[t / 4 * 4 * kInt8Width + 4 * c + t % 4] = number;
        sums[c] += number;
      }
    std::memcpy(packed, sums, sizeof sums);
  }
}

const Loop<Int8PackArgs> kPackInt8 = {pack_int8_parts, pack_int8_run};

Loop<Int8ProductArgs> int8_product(Isa isa, ByteProducts bytes) {
  if (isa == Isa::kAvx512) return avx512::kInt8Products[static_cast<int>(bytes)];
  return isa == Isa::kAvx2 ? avx2::kInt8ByPairs : baseline::kInt8ByPairs;
}

}  // namespace rlx::cpu
