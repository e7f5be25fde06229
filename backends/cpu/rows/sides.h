// SPDX-License-Identifier: Apache-2.0
// The two sides of a product, from the views of its operands.
#pragma once

#include <algorithm>

#include "backends/cpu/gemm/gemm.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

// On one thread: arithmetic at the rate that products of f32 reach, or fetching the sides and the result from a cache
// that cores share, whichever takes longer. An estimate that is too high shares steps that one thread would end sooner.
inline double product_nanoseconds(const Caps& caps, double batches, double m, double n, double k) {
  constexpr double kFlops[kIsaCount] = {24, 70, 150}, kBytes = 24;  // per nanosecond
  double arithmetic = 2 * m * n * k / kFlops[static_cast<int>(caps.cpu.chosen)];
  double fetching = (m * k + n * k + m * n) * sizeof(float) / kBytes;
  return 100 + batches * std::max(arithmetic, fetching);
}

template <class T>
double product_nanoseconds(const Caps& caps, const MatmulSides<T>& p) {
  return product_nanoseconds(caps, static_cast<double>(p.batches()), static_cast<double>(p.m), static_cast<double>(p.n),
                             static_cast<double>(p.k));
}

// Strides of the batch axes of an operand, aligned right with those of y; 0 where it is broadcast.
inline void set_batch(int64_t* strides, const View& operand, int32_t batch_rank) {
  auto own = static_cast<int32_t>(operand.dims.size()) - 2;
  for (int32_t i = 0; i < own; i++)
    if (operand.dims[static_cast<size_t>(i)] != 1)
      strides[batch_rank - own + i] = operand.strides[static_cast<size_t>(i)];
}

template <class T>
void set_sides(const StepView& view, MatmulSides<T>& sides, bool flip_a, bool flip_b) {
  const View &a = view.in[0], &b = view.in[1], &y = view.out[0];
  size_t ra = a.dims.size(), rb = b.dims.size(), ry = y.dims.size();
  sides.a = a.as<T>();
  sides.b = b.as<T>();
  sides.y = y.as<T>();
  sides.m = y.dims[ry - 2];
  sides.n = y.dims[ry - 1];
  sides.k = a.dims[ra - 1 - flip_a];
  sides.a_row = a.strides[ra - 2 + flip_a];
  sides.a_col = a.strides[ra - 1 - flip_a];
  sides.b_row = b.strides[rb - 2 + flip_b];
  sides.b_col = b.strides[rb - 1 - flip_b];
  sides.y_row = y.strides[ry - 2];
  sides.batch_rank = static_cast<int32_t>(ry) - 2;
  for (int32_t i = 0; i < sides.batch_rank; i++) sides.batch[i] = y.dims[static_cast<size_t>(i)];
  set_batch(sides.a_batch, a, sides.batch_rank);
  set_batch(sides.b_batch, b, sides.batch_rank);
  set_batch(sides.y_batch, y, sides.batch_rank);
}

}  // namespace rlx::cpu
