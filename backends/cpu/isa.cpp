// SPDX-License-Identifier: Apache-2.0
// cpuid, read by hand: libgcc's __builtin_cpu_supports would bring a constructor that runs when the library is loaded.
#include "backends/cpu/isa.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace rlx::cpu {

namespace {

// The chosen instruction set per processor, from runs of bench/limits. It is a table because measuring at run time
// could change the bits of results.
struct Choice {
  std::string_view vendor;
  int family;
  Isa f32;
};
constexpr Choice kChoices[] = {
    {"GenuineIntel", 6, Isa::kAvx512},     // FMA 512 bits wide: 1.85x the AVX2 peak
    {"AuthenticAMD", 0x19, Isa::kAvx512},  // double-pumped: AVX2's peak, but masks and 32 registers
    {"AuthenticAMD", 0x1a, Isa::kAvx512},
};
constexpr Isa kUnknownCpu = Isa::kAvx2;

#if defined(__x86_64__)

struct Registers {
  uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(uint32_t leaf, uint32_t subleaf = 0) {
  Registers r;
  __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d);
  return r;
}

bool bit(uint32_t word, int index) {
  return (word >> index) & 1;
}

uint64_t enabled_states() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t{high} << 32) | low;
}

Isa highest_isa() {
  Registers one = cpuid(1), seven = cpuid(7);
  if (!bit(one.c, 27)) return Isa::kBaseline;  // OSXSAVE: xgetbv exists
  uint64_t states = enabled_states();
  bool ymm = (states & 0x6) == 0x6, zmm = (states & 0xe6) == 0xe6;
  bool avx2 =
      bit(one.c, 28) && bit(one.c, 12) && bit(one.c, 29) && bit(seven.b, 5) && bit(seven.b, 8);  // +FMA F16C BMI2
  if (!ymm || !avx2) return Isa::kBaseline;
  bool avx512 = bit(seven.b, 16) && bit(seven.b, 17) && bit(seven.b, 30) && bit(seven.b, 31);  // F DQ BW VL
  return zmm && avx512 ? Isa::kAvx512 : Isa::kAvx2;
}

// The registers of AMX are large, so the kernel keeps them only for a process that has asked for them.
bool may_use_tiles(Registers seven) {
  constexpr int kTileConfig = 17, kTileData = 18, kAmxTile = 24, kAmxInt8 = 25;
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  if (!bit(seven.d, kAmxTile) || !bit(seven.d, kAmxInt8)) return false;
  uint64_t states = enabled_states();
  if (!(states >> kTileConfig & 1) || !(states >> kTileData & 1)) return false;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

ByteProducts byte_products(Isa highest) {
  Registers seven = cpuid(7);
  if (highest != Isa::kAvx512 || !bit(seven.c, 11)) return ByteProducts::kPairs;
  return may_use_tiles(seven) ? ByteProducts::kTiles : ByteProducts::kFours;
}

// Intel's leaf 4 and AMD's 0x8000001d have one layout.
Caches read_caches(bool amd) {
  Caches caches;
  uint32_t leaf = amd ? 0x8000001d : 4;
  for (uint32_t i = 0; i < 8; ++i) {
    Registers r = cpuid(leaf, i);
    uint32_t type = r.a & 31, level = (r.a >> 5) & 7;
    if (type == 0) break;
    size_t bytes = size_t{(r.b >> 22) + 1} * (((r.b >> 12) & 1023) + 1) * ((r.b & 4095) + 1) * (size_t{r.c} + 1);
    if (level == 1 && type == 1) caches.l1d = bytes;
    if (level == 2) caches.l2 = bytes;
    if (level == 3) caches.l3 = bytes;
  }
  return caches;
}

void identify(CpuInfo& info) {
  Registers zero = cpuid(0), one = cpuid(1);
  std::memcpy(info.vendor, &zero.b, 4);
  std::memcpy(info.vendor + 4, &zero.d, 4);
  std::memcpy(info.vendor + 8, &zero.c, 4);
  auto bits = [&](int lowest, uint32_t mask) { return static_cast<int>(one.a >> lowest & mask); };
  int family = bits(8, 15), extended = bits(20, 255);
  info.family = family == 15 ? family + extended : family;
  info.model = bits(4, 15) | bits(12, 0xf0);
  info.highest = highest_isa();
  info.bytes = byte_products(info.highest);
  info.permutes_bytes = info.highest == Isa::kAvx512 && bit(cpuid(7).c, 1);
  info.caches = read_caches(std::string_view(info.vendor) == "AuthenticAMD");
}

#else

void identify(CpuInfo&) {}

#endif

}  // namespace

std::string_view isa_name(Isa isa) {
  constexpr std::string_view kNames[kIsaCount] = {"baseline", "avx2", "avx512"};
  return kNames[static_cast<int>(isa)];
}

CpuInfo detect_cpu() {
  CpuInfo info;
  identify(info);
  info.chosen = std::min(info.highest, kUnknownCpu);
  for (const Choice& choice : kChoices) {
    if (choice.vendor == info.vendor && choice.family == info.family) info.chosen = std::min(info.highest, choice.f32);
  }
  return info;
}

IsaList available_isas() {
  IsaList list;
  Isa highest = detect_cpu().highest;
  for (Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (isa <= highest) list.items[list.count++] = isa;
  }
  return list;
}

}  // namespace rlx::cpu
