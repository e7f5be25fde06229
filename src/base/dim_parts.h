// SPDX-License-Identifier: Apache-2.0
// The inside of dims, for the sources of Dim and for proofs about dims (ir/sizes.cpp, ir/size_proof.cpp): the order and
// kinds of atoms, and arithmetic that saturates at +-2^62. Sizes beyond that mean nothing, and shape checks refuse
// them.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/dim.h"

namespace rlx {

int compare(const Atom& a, const Atom& b);                  // a total order
size_t hash_of_opposite(const Dim& dim);                    // the hash of -dim
Dim combined(Atom::Kind kind, const Dim& a, const Dim& b);  // for all kinds but a symbol

// Whether the term is a multiple of max(a, b) or min(a, b).
inline bool is_extreme(const Term& term) {
  return term.atoms.size() == 1 && (term.atoms[0]->kind == Atom::kMax || term.atoms[0]->kind == Atom::kMin);
}

namespace saturating {

inline constexpr int64_t kLimit = Interval::kUnbounded;

inline int64_t saturate(__int128 value) {
  return static_cast<int64_t>(std::clamp<__int128>(value, -kLimit, kLimit));
}
inline int64_t add(int64_t a, int64_t b) {
  return saturate(__int128{a} + b);
}
inline int64_t multiply(int64_t a, int64_t b) {
  return saturate(__int128{a} * b);
}
inline int64_t divide_down(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

}  // namespace saturating

}  // namespace rlx
