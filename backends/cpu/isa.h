// SPDX-License-Identifier: Apache-2.0
// The instruction sets that the CPU kernels are compiled for, and those that this machine has. Code of an Isa's
// namespace runs only if both cpuid and the operating system (XCR0) allow it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rlx::cpu {

enum class Isa : int32_t { kBaseline, kAvx2, kAvx512 };
inline constexpr int kIsaCount = 3;

std::string_view isa_name(Isa isa);  // "baseline", "avx2", "avx512"

// How sums of products of 8-bit numbers are computed: two products at a time in 16 bits; four, by AVX512_VNNI; or whole
// tiles of a matrix, by AMX. The bits of results are the same.
enum class ByteProducts : int32_t { kPairs, kFours, kTiles };

// Bytes per core for level 1 (data) and 2, per package for level 3; 0 if cpuid does not report it.
struct Caches {
  size_t l1d = 0, l2 = 0, l3 = 0;
};

struct CpuInfo {
  char vendor[13] = {};  // "GenuineIntel", "AuthenticAMD"
  int family = 0, model = 0;
  Isa highest = Isa::kBaseline;               // the highest that may run
  Isa chosen = Isa::kBaseline;                // the one that is used, by the table of choices
  ByteProducts bytes = ByteProducts::kPairs;  // the best that `highest` has
  bool permutes_bytes = false;                // by AVX512_VBMI
  Caches caches;
};

// Executes cpuid at each call (tens of microseconds on some virtual machines): a device calls it once and keeps the
// answer. Where there is AMX it asks the kernel for the right to use it, which then holds for the whole process.
CpuInfo detect_cpu();

// Every Isa that may run here, in ascending order.
struct IsaList {
  Isa items[kIsaCount];
  int count = 0;
  const Isa* begin() const { return items; }
  const Isa* end() const { return items + count; }
};
IsaList available_isas();

}  // namespace rlx::cpu
