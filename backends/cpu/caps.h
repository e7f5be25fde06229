// SPDX-License-Identifier: Apache-2.0
// What encoding is told of this machine: its instruction set, asked once, and the loops compiled for it.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/kernels.h"

namespace rlx::cpu {

struct Caps {
  CpuInfo cpu;
  KernelFns fns;
  explicit Caps(const CpuInfo& info) : cpu(info), fns(kernel_fns(info.chosen)) {}
};

}  // namespace rlx::cpu
