// SPDX-License-Identifier: Apache-2.0
// Products of two variable sides by OpenBLAS, cut into tiles that any thread may compute. T: float, double and their
// complex numbers. Sums are of class SUM: at most 512 terms run in one accumulator.
#pragma once

#include "backends/cpu/gemm/gemm.h"
#include "base/status.h"

namespace rlx::cpu {

// Whether BLAS can read the sides in place: one stride of each is 1, and the other is at least a row.
template <class T>
bool blas_takes(const MatmulSides<T>& p);

// The product as a Loop, for sides that blas_takes.
template <class T>
int64_t blas_parts(const MatmulSides<T>& p);
template <class T>
Status blas_run(const MatmulSides<T>& p, int64_t begin, int64_t end);

}  // namespace rlx::cpu
