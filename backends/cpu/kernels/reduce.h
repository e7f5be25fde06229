// SPDX-License-Identifier: Apache-2.0
// Reductions along any axes, and running folds along one, in the type of the elements. Class SUM: no accumulator adds
// more than 512 terms before it is added to another.
#pragma once

#include <span>

#include "backends/cpu/isa.h"
#include "backends/cpu/loop.h"
#include "base/dtype.h"
#include "base/static_vector.h"

namespace rlx::cpu {

enum class ReduceFn : int32_t { kSum, kProd, kMax, kMin };  // NaN wins in kMax and kMin

// Axes that are walked together. Strides count elements.
struct ReduceAxes {
  int32_t rank = 0;
  int64_t dims[kMaxRank] = {}, strides[kMaxRank] = {};
  int64_t count() const {
    int64_t count = 1;
    for (int32_t i = 0; i < rank; i++) count *= dims[i];
    return count;
  }
};

// x is dense. Its innermost axes are [n, inner]; n is folded. The result is y[kept, inner].
struct ReduceArgs {
  const void* x = nullptr;
  void* y = nullptr;
  DType dtype = DType::kF32;
  ReduceFn fn = ReduceFn::kSum;
  int64_t n = 1, inner = 1;
  ReduceAxes kept, folded;  // all other axes
};
// `axes`: bit i says whether dim i is folded.
void set_axes(ReduceArgs& args, std::span<const int64_t> dims, uint32_t axes);

// Running folds along the middle axis of x[outer, n, inner]. Floats accumulate in f64, as in the op's eval. y may be x.
struct CumulativeArgs {
  const void* x = nullptr;
  void* y = nullptr;
  DType dtype = DType::kF32;
  ReduceFn fn = ReduceFn::kSum;
  int64_t outer = 1, n = 1, inner = 1;
  bool exclusive = false, reverse = false;
};

bool can_reduce(DType dtype);

struct ReduceFns {
  Loop<CumulativeArgs> cumulate;
  Loop<ReduceArgs> reduce;
};
const ReduceFns& reduce_fns(Isa isa);

}  // namespace rlx::cpu
