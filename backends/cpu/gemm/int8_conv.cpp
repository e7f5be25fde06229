// SPDX-License-Identifier: Apache-2.0
// The convolutions of 8-bit numbers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/int8_conv.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>

#define RLX_KERNELS "backends/cpu/gemm/int8_conv.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

static int64_t pack_int8_filters_parts(const Int8FilterPackArgs& p) {
  return p.filters;
}

static void pack_int8_filters_run(const Int8FilterPackArgs& p, int64_t begin, int64_t end) {
  const uint8_t flip = p.w.is_signed ? 0 : 0x80;
  const int64_t bytes = int8_filter_bytes(p.channels, p.taps);
  for (int64_t filter = begin; filter < end; filter++) {
    const uint8_t* from = p.w.data + filter * p.channels * p.taps;
    std::byte* packed = p.packed + filter * bytes;
    std::memset(packed, 0, static_cast<size_t>(bytes));
    int32_t sum = 0;
    const int64_t fours = (p.channels + 3) / 4;
    for (int64_t c = 0; c < p.channels; c++) {
      const int64_t four = c / 4, first = four / kFourBlock * kFourBlock;
      const int64_t wide = std::min(fours - first, kFourBlock);
      std::byte* to = packed + 4 + (first * p.taps + four - first) * 4 + c % 4;
      for (int64_t tap = 0; tap < p.taps; tap++) {
        auto number = static_cast<int8_t>(*from++ ^ flip);
        to[tap * wide * 4] = static_cast<std::byte>(number);
        sum += number;
      }
    }
    std::memcpy(packed, &sum, sizeof sum);
  }
}

const Loop<Int8FilterPackArgs> kPackInt8Filters = {pack_int8_filters_parts, pack_int8_filters_run};

// The answer is the same for every Isa.
bool fits_int8_conv(const ConvShape& shape) {
  return baseline::int8_conv_fits(shape);
}

Loop<Int8ConvArgs> int8_conv(Isa isa, ByteProducts bytes) {
  if (isa == Isa::kAvx512) return avx512::kInt8Convs[static_cast<int>(bytes)];
  return isa == Isa::kAvx2 ? avx2::kConvByPairs : baseline::kConvByPairs;
}

}  // namespace rlx::cpu
