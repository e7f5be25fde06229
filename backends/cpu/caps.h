// SPDX-License-Identifier: Apache-2.0
// What `encode` may know about this machine: its instruction set, detected once, and the loops compiled for it.
#pragma once

#include "backends/cpu/gemm/int8_conv.h"
#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/kernels.h"

namespace rlx::cpu {

struct Caps {
  CpuInfo cpu;
  KernelFns fns;
  Loop<Int8ProductArgs> int8_product;
  Loop<Int8ConvArgs> int8_conv;
  explicit Caps(const CpuInfo& info)
      : cpu(info),
        fns(kernel_fns(info.chosen)),
        int8_product(cpu::int8_product(info.chosen, info.bytes)),
        int8_conv(cpu::int8_conv(info.chosen, info.bytes)) {}
};

}  // namespace rlx::cpu
