// SPDX-License-Identifier: Apache-2.0
// The accumulators of sums of products (semantics.md N1, N10): f64 for floats, c128 for complex numbers, u64 for
// integers, because wrapping modulo 2^64 includes wrapping at every narrower width. A result is rounded once.
#pragma once

#include <type_traits>

#include "base/visit.h"

namespace rlx {

template <class A>
using Accumulator =
    std::conditional_t<is_complex_type<A>, c128, std::conditional_t<std::is_integral_v<A>, uint64_t, double>>;

template <class Sum, class A>
Sum term(A x) {
  return static_cast<Sum>(static_cast<Compute<A>>(x));
}
template <class Out, class Sum>
Out rounded(Sum sum) {
  return Out(sum);
}

inline constexpr DTypeSet kEightBit{DType::kI8, DType::kU8};

}  // namespace rlx
