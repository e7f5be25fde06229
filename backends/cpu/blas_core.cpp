// SPDX-License-Identifier: Apache-2.0
// Tells OpenBLAS which kernels to use where its own table is older than the processor. It asks the environment once,
// while the library loads: nothing here may need a constructor. Linked with --wrap=getenv; the user's own variable is
// always obeyed.
#include <cstring>

#include "backends/cpu/blas.h"

namespace rlx::cpu {

// OpenBLAS 0.3.21 (driver/others/dynamic.c) knows Intel by model number and takes later models for something old; AMD
// it knows by family up to 19h (Zen 4), and chooses well there. Its f32, f64 and complex kernels for AVX-512 are those
// of SkylakeX in all later cores.
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
