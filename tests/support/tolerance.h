// SPDX-License-Identifier: Apache-2.0
// The tolerance classes of semantics.md C1-C10 as a table, and the comparison that reads it.
#pragma once

#include <string>

#include "base/tensor.h"
#include "ir/op.h"

namespace rlx::test {

// |y - oracle| may be at most the sum of these terms. The figures are for f32.
struct ToleranceRow {
  Tol tol;
  double ulps;        // spacings of the oracle's value
  double absolute;    //
  double relative;    // to |oracle|
  double by_input;    // to max(1, |x|)
  double by_largest;  // to 1 + the largest |oracle| of the tensor
  double by_norm;     // to n * eps * the largest |oracle|, n the last dim
  bool by_terms;      // eps * (16 + 2 sqrt(n)) * the sum of |terms|
  int64_t steps;      // of an integer result
};
const ToleranceRow& tolerance_of(Tol tol);

// What a bound may depend on besides the oracle's value. An empty tensor is unknown, and its share of the bound is 0.
struct Terms {
  Tensor sums;    // f64, the shape of the result: the sum of |terms| of each element
  Tensor counts;  // f64: the number of terms
  Tensor input;   // f64, the shape of the result: x
};

// "" if `got`, of any dtype, is within the class of `oracle` (f64, c128, or exact); else a text about the first element
// that is not. The precision is that of `dtype`: halves get one spacing of their own in addition, f64 has the figures
// times 2^-29.
std::string difference(const Tensor& got, const Tensor& oracle, DType dtype, Tol tol, const Terms& terms = {});

double round_to(DType dtype, double value);  // to nearest even, once; overflow is inf

}  // namespace rlx::test
