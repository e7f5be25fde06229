// SPDX-License-Identifier: Apache-2.0
// The convolutions of 8-bit numbers for every instruction set, and the table that chooses among them.
#include "backends/cpu/gemm/integer_conv.h"

#include <bit>
#include <cstddef>
#include <cstring>

#define RLX_KERNELS "backends/cpu/gemm/integer_conv.inl"
#include "backends/cpu/each_isa.inl"

namespace rlx::cpu {

void pack_integer_filters(const EightBit& w, int64_t filters, int64_t channels, int64_t taps, std::byte* packed) {
  const uint8_t flip = w.is_signed ? 0 : 0x80;
  const uint8_t* from = w.data;
  for (int64_t f = 0; f < filters; f++, packed += integer_filter_bytes(channels, taps)) {
    std::memset(packed, 0, static_cast<size_t>(integer_filter_bytes(channels, taps)));
    int32_t sum = 0;
    for (int64_t c = 0; c < channels; c++)
      for (int64_t tap = 0; tap < taps; tap++) {
        auto number = static_cast<int8_t>(*from++ ^ flip);
        packed[4 + (c / 4 * taps + tap) * 4 + c % 4] = static_cast<std::byte>(number);
        sum += number;
      }
    std::memcpy(packed, &sum, sizeof sum);
  }
}

// The same for every Isa.
bool fits_integer_conv(const ConvShape& shape) {
  return baseline::integer_conv_fits(shape);
}

Loop<IntegerConvArgs> integer_conv(Isa isa, bool vnni) {
  if (isa == Isa::kAvx512) return vnni ? avx512::kConvByFours : avx512::kConvByPairs;
  return isa == Isa::kAvx2 ? avx2::kConvByPairs : baseline::kConvByPairs;
}

}  // namespace rlx::cpu
