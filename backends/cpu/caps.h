// SPDX-License-Identifier: Apache-2.0
// What `encode` may know about this machine: its instruction set, detected once, and the loops compiled for it.
#pragma once

#include "backends/cpu/gemm/integer_conv.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/kernels.h"

namespace rlx::cpu {

struct Caps {
  CpuInfo cpu;
  KernelFns fns;
  Loop<IntegerProductArgs> integer_product;
  Loop<IntegerConvArgs> integer_conv;
  explicit Caps(const CpuInfo& info)
      : cpu(info),
        fns(kernel_fns(info.chosen)),
        integer_product(cpu::integer_product(info.chosen, info.bytes)),
        integer_conv(cpu::integer_conv(info.chosen, info.bytes)) {}
};

}  // namespace rlx::cpu
