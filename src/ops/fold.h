// SPDX-License-Identifier: Apache-2.0
// Folds: how reductions, running folds, windows and scatters accumulate. Floats accumulate in f64 and complex numbers
// in c128, whatever their storage, so a result is rounded once; integers accumulate in their own type and wrap.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/visit.h"
#include "ir/graph.h"

namespace rlx {

// The accumulator type of T: f64 for floats, c128 for complex numbers, T for integers and bools.
template <class T>
using Wide =
    std::conditional_t<is_complex_type<T>, c128,
                       std::conditional_t<std::is_integral_v<T> || std::is_same_v<T, bool8>, Compute<T>, double>>;

template <class T>
Wide<T> widened(T x) {
  return static_cast<Wide<T>>(static_cast<Compute<T>>(x));
}
template <class T>
T narrowed(Wide<T> x) {
  return T(x);
}

struct Fold {
  enum Kind { kSum, kProd, kMax, kMin } kind;

  // The fold of a name in a reduction or a scatter; there sum is add, and prod is mul.
  static Fold named(std::string_view fn) {
    return {fn == "sum" || fn == "add" ? kSum : fn == "prod" || fn == "mul" ? kProd : fn == "max" ? kMax : kMin};
  }
  // Sums and products need numbers, extremes need an order.
  bool accepts(DType dtype) const { return kind == kSum || kind == kProd ? dtype != DType::kBool : !is_complex(dtype); }

  // The fold of no elements (semantics.md N8).
  template <class W>
  W identity() const {
    if constexpr (is_complex_type<W>) {
      return kind == kProd ? W(1) : W(0);
    } else {
      using Limits = std::numeric_limits<W>;
      if (kind == kSum) return W(0);
      if (kind == kProd) return W(1);
      if constexpr (Limits::has_infinity)
        return kind == kMax ? -Limits::infinity() : Limits::infinity();
      else
        return kind == kMax ? Limits::lowest() : Limits::max();
    }
  }

  template <class W>
  W operator()(W a, W b) const {
    if constexpr (is_complex_type<W>) {
      return kind == kSum ? a + b : a * b;
    } else if constexpr (std::is_same_v<W, bool>) {
      return kind == kMax ? a || b : a && b;
    } else if constexpr (std::is_integral_v<W>) {
      using U = std::common_type_t<std::make_unsigned_t<W>, unsigned>;
      if (kind == kSum) return static_cast<W>(static_cast<U>(a) + static_cast<U>(b));
      if (kind == kProd) return static_cast<W>(static_cast<U>(a) * static_cast<U>(b));
      return kind == kMax ? std::max(a, b) : std::min(a, b);
    } else {
      if (kind == kSum) return a + b;
      if (kind == kProd) return a * b;
      if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<W>::quiet_NaN();
      return kind == kMax ? std::max(a, b) : std::min(a, b);
    }
  }
};

// RLX_E_DTYPE unless the fold `fn` of a node is defined for the dtype of its first input.
Status check_fold(InferArgs& args);

}  // namespace rlx
