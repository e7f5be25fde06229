// SPDX-License-Identifier: Apache-2.0
// The convolutions of 8-bit numbers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/integer_conv.h"

#include <bit>
#include <cstddef>
#include <cstring>

#define RLX_KERNELS "backends/cpu/gemm/integer_conv.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

static int64_t pack_integer_filters_parts(const IntegerFilterPackArgs& p) {
  return p.filters;
}

static void pack_integer_filters_run(const IntegerFilterPackArgs& p, int64_t begin, int64_t end) {
  const uint8_t flip = p.w.is_signed ? 0 : 0x80;
  const int64_t bytes = integer_filter_bytes(p.channels, p.taps);
  for (int64_t filter = begin; filter < end; filter++) {
    const uint8_t* from = p.w.data + filter * p.channels * p.taps;
    std::byte* packed = p.packed + filter * bytes;
    std::memset(packed, 0, static_cast<size_t>(bytes));
    int32_t sum = 0;
    for (int64_t c = 0; c < p.channels; c++)
      for (int64_t tap = 0; tap < p.taps; tap++) {
        auto number = static_cast<int8_t>(*from++ ^ flip);
        packed[4 + (c / 4 * p.taps + tap) * 4 + c % 4] = static_cast<std::byte>(number);
        sum += number;
      }
    std::memcpy(packed, &sum, sizeof sum);
  }
}

const Loop<IntegerFilterPackArgs> kPackIntegerFilters = {pack_integer_filters_parts, pack_integer_filters_run};

// The answer is the same for every Isa.
bool fits_integer_conv(const ConvShape& shape) {
  return baseline::integer_conv_fits(shape);
}

Loop<IntegerConvArgs> integer_conv(Isa isa, ByteProducts bytes) {
  if (isa == Isa::kAvx512) return bytes == ByteProducts::kPairs ? avx512::kConvByPairs : avx512::kConvByFours;
  return isa == Isa::kAvx2 ? avx2::kConvByPairs : baseline::kConvByPairs;
}

}  // namespace rlx::cpu
