// SPDX-License-Identifier: Apache-2.0
// Proofs of a = b and a <= b from the ranges and guards of a scope. A proof has five levels. Each one asks those before
// it, and costs more:
// 1. SizeScope::has_guard: a guard says so of the difference b - a.
// 2. has_relation: the same dim, level 1, or for a <= b the range of the difference, where guards may narrow that of a
//    symbol.
// 3. is_at_most: level 2, also with one operand in the place of a min or max.
// 4. proves: level 3 for a <= b; for a = b level 2, also as a <= b and b <= a.
// 5. implies: false if it fails at a corner of the allowed sizes (Corners). Else level 4 of the dims as given, then of
//    the dims `resolved` (a min or max becomes one operand where their order is known), then of those also `reduced`
//    (symbols in terms of others, as equations say). Last, for a = b, of those also `gathered`.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "base/dim_memo.h"
#include "ir/sizes.h"

namespace rlx {

// Answers questions about one scope, which must not change meanwhile. A question needs the ranges of many dims that
// share most of their parts: of n min, one in the other, it asks for n. So ranges are kept.
class SizeScope::Proof {
 public:
  explicit Proof(const SizeScope& scope);
  Proof(const Proof&) = delete;
  Proof& operator=(const Proof&) = delete;

  bool implies(Guard::Relation relation, const Dim& a, const Dim& b);
  Dim resolved(const Dim& dim);

 private:
  bool has_relation(Guard::Relation relation, const Dim& a, const Dim& b);
  bool is_at_most(const Dim& a, const Dim& b, int depth);
  bool proves(Guard::Relation relation, const Dim& a, const Dim& b);
  Interval range_by_guards(std::string_view symbol) const;

  // Two sets of sizes, those that ranges and guards allow: each symbol at its least, and each at its largest. What does
  // not hold at one of them has no proof. To see that costs far less than to look for one.
  class Corners {
   public:
    explicit Corners(const SizeScope& scope);
    bool refute(Guard::Relation relation, const Dim& a, const Dim& b);

   private:
    void keep_allowed_by(const std::vector<Guard>& guards);
    std::optional<bool> holds_at(size_t corner, Guard::Relation relation, const Dim& a, const Dim& b);
    std::optional<int64_t> value(const Dim& dim, size_t corner);

    const SizeScope& scope_;
    std::array<bool, 2> is_allowed_{true, true};
    std::array<KnownValues, 2> values_;
  };

  const SizeScope& scope_;
  Corners corners_;
  Ranges ranges_, ranges_by_guards_;
  bool narrows_ranges_;  // whether a guard narrows the range of a symbol
};

}  // namespace rlx
