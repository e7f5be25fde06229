// SPDX-License-Identifier: Apache-2.0
// Tells OpenBLAS which kernels to use where its own table is older than the processor. It asks the environment once,
// while the library loads: nothing here may need a constructor. Linked with --wrap=getenv; the user's own variable is
// always obeyed.
#include <cpuid.h>

#include <cstring>

#include "backends/cpu/blas.h"

namespace rlx::cpu {

CpuIdentity this_cpu() {
  __builtin_cpu_init();  // we may run before the constructor that would do it
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  __get_cpuid(1, &eax, &ebx, &ecx, &edx);
  unsigned family = (eax >> 8) & 0xF;
  if (family == 0xF) family += (eax >> 20) & 0xFF;  // Intel SDM vol. 2A, CPUID, leaf 1
  bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
                __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl");
  return {.amd = __builtin_cpu_is("amd") != 0,
          .family = static_cast<int>(family),
          .avx2 = __builtin_cpu_supports("avx2") != 0,
          .fma = __builtin_cpu_supports("fma") != 0,
          .avx512 = avx512,
          .avx512_bf16 = avx512 && __builtin_cpu_supports("avx512bf16")};
}

// OpenBLAS 0.3.21 (driver/others/dynamic.c) knows Intel by model number and takes later models for something old; AMD
// it knows by family up to 19h (Zen 4), and chooses well there. Cooperlake, SkylakeX with bf16, is its newest core.
const char* better_blas_core(const CpuIdentity& cpu) {
  constexpr int kLastKnownAmd = 0x19;
  if (cpu.amd && cpu.family <= kLastKnownAmd) return nullptr;
  if (cpu.avx512_bf16) return "Cooperlake";
  if (cpu.avx512) return "SkylakeX";
  return cpu.avx2 && cpu.fma ? "Haswell" : nullptr;
}

}  // namespace rlx::cpu

extern "C" {
char* __real_getenv(const char* name);
char* __wrap_getenv(const char* name);

char* __wrap_getenv(const char* name) {
  char* value = __real_getenv(name);
  if (value || std::strcmp(name, "OPENBLAS_CORETYPE") != 0) return value;
  return const_cast<char*>(rlx::cpu::better_blas_core(rlx::cpu::this_cpu()));  // OpenBLAS only compares it
}
}
