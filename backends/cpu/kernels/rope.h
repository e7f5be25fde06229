// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding over f32, class SUM (semantics.md C3). Elements of a head are adjacent; strides count
// elements.
#pragma once

#include "backends/cpu/isa.h"
#include "backends/cpu/kernels/attention.h"
#include "backends/cpu/loop.h"

namespace rlx::cpu {

// [batch, sequence, pair], with adjacent pairs: strides are 0 where one table serves all.
struct RopeTable {
  const float* data = nullptr;
  int64_t batch_stride = 0, seq_stride = 0;
};

// The first `pairs` pairs of each head are rotated; the elements after them are copied.
struct RopeArgs {
  const float* x = nullptr;
  float* y = nullptr;  // not x
  RopeTable cos, sin;
  int64_t batch = 0, seq = 0, heads = 0, d = 0, pairs = 0;
  HeadStrides x_strides, y_strides;
  bool interleaved = false;  // pairs are neighbours, not halves
  bool inverse = false;      // rotate backwards
};

struct RopeFns {
  Loop<RopeArgs> rope;
};
const RopeFns& rope_fns(Isa isa);

}  // namespace rlx::cpu
