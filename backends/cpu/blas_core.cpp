// SPDX-License-Identifier: Apache-2.0
// Tells OpenBLAS which kernels to use if its own table is older than the processor. OpenBLAS reads the environment
// once, while the library loads, so nothing here may need a constructor. Linked with --wrap=getenv. A variable that the
// user has set always wins.
#include <cstring>

#include "backends/cpu/blas.h"

namespace rlx::cpu {

// OpenBLAS 0.3.21 (driver/others/dynamic.c) recognises Intel processors by model number, and takes later models for old
// ones. It recognises AMD processors by family, up to 19h (Zen 4), and chooses well there. Its f32, f64 and complex
// kernels for AVX-512 are those of SkylakeX for all later cores.
const char* better_blas_core(const CpuInfo& cpu) {
  constexpr int kLastKnownAmd = 0x19;
  if (std::string_view(cpu.vendor) == "AuthenticAMD" && cpu.family <= kLastKnownAmd) return nullptr;
  constexpr const char* kCores[kIsaCount] = {nullptr, "Haswell", "SkylakeX"};
  return kCores[static_cast<int>(cpu.highest)];
}

}  // namespace rlx::cpu

extern "C" {
char* __real_getenv(const char* name);
char* __wrap_getenv(const char* name);

char* __wrap_getenv(const char* name) {
  char* value = __real_getenv(name);
  if (value || std::strcmp(name, "OPENBLAS_CORETYPE") != 0) return value;
  return const_cast<char*>(rlx::cpu::better_blas_core(rlx::cpu::detect_cpu()));  // OpenBLAS only compares it
}
}
