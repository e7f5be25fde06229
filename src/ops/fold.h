// SPDX-License-Identifier: Apache-2.0
// Folds: what reductions, running folds, windows and scatters accumulate with. One rule of width: floats in f64 and
// complex in c128, whatever is stored, so a result is rounded once; integers in themselves, wrapping.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/visit.h"
#include "ir/graph.h"

namespace rlx {

// What a fold of T is kept in: floats in f64, complex in c128, integers and bools in themselves.
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

  // By the names of reductions and of scatters: sum is add, prod is mul.
  static Fold named(std::string_view fn) {
    return {fn == "sum" || fn == "add" ? kSum : fn == "prod" || fn == "mul" ? kProd : fn == "max" ? kMax : kMin};
  }
  // Sums and products of numbers, extremes of what has an order.
  bool accepts(DType dtype) const { return kind == kSum || kind == kProd ? dtype != DType::kBool : !is_complex(dtype); }

  // What the fold of nothing is (semantics.md N8).
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

}  // namespace rlx
