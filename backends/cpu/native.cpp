// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/table.h"

namespace rlx::cpu {

void add_native_kernels(std::vector<std::vector<CpuKernel>>&) {}

}  // namespace rlx::cpu
