// SPDX-License-Identifier: Apache-2.0
// All loops of one instruction set: a device looks them up once and keeps the pointers.
#pragma once

#include "backends/cpu/gemm/conv.h"
#include "backends/cpu/gemm/int8.h"
#include "backends/cpu/gemm/integer.h"
#include "backends/cpu/gemm/nbits.h"
#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/kernels/gather_sum.h"
#include "backends/cpu/kernels/norm.h"
#include "backends/cpu/kernels/quantize.h"
#include "backends/cpu/kernels/reduce.h"
#include "backends/cpu/kernels/region.h"
#include "backends/cpu/kernels/roi_align.h"
#include "backends/cpu/kernels/rope.h"
#include "backends/cpu/kernels/typed.h"
#include "backends/cpu/kernels/window.h"

namespace rlx::cpu {

struct KernelFns {
  GemmFns gemm;
  ConvFns conv;
  NbitsFns nbits;
  IntegerFns integer;
  AttentionFns attention;
  RopeFns rope;
  NormFns norm;
  RegionFns region;
  WindowFns window;
  QuantizeFns quantize;
  TypedFns typed;
  ReduceFns reduce;
  GatherSumFns gather_sum;
  RoiAlignFns roi_align;
};

inline KernelFns kernel_fns(Isa isa) {
  return {gemm_fns(isa),  conv_fns(isa),   nbits_fns(isa),      integer_fns(isa),  attention_fns(isa),
          rope_fns(isa),  norm_fns(isa),   region_fns(isa),     window_fns(isa),   quantize_fns(isa),
          typed_fns(isa), reduce_fns(isa), gather_sum_fns(isa), roi_align_fns(isa)};
}

}  // namespace rlx::cpu
