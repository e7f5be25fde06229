// SPDX-License-Identifier: Apache-2.0
// Values of many dims at fixed sizes (dim_value.cpp), and their ranges for fixed ranges of symbols (dim_range.cpp). The
// dims of a graph share most of their parts, so what was found for a part is kept for the next dim.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "base/dim.h"
#include "base/hash.h"

namespace rlx {

using KnownValues = std::unordered_map<AtomPtr, Result<int64_t>>;  // at the sizes that `evaluate` was given
Result<int64_t> evaluate(const Dim& dim, const SymbolLookup& sizes, KnownValues& known);

class Ranges {
 public:
  explicit Ranges(RangeLookup of_symbol) : of_symbol_(std::move(of_symbol)) {}
  Interval of(const Dim& dim);  // as range_of, or narrower: earlier results take nothing of the budget of a question

 private:
  // The symbols that a dim rises with, and those that it falls with: a bit for each, by their numbers. In both where
  // that is unclear. As trend_of, but for all symbols at once: a proof asks for thousands of sums.
  struct Trends {
    std::vector<uint64_t> rising, falling;
    void set_unclear();
  };
  bool spend(const Dim& sum);
  Interval range(const Dim& dim);
  Interval range(const AtomPtr& atom);
  Interval range_of_new(const Atom& atom);
  std::optional<Interval> range_by_remainder(const Dim& dim, const AtomPtr& quotient);
  std::optional<Interval> range_by_extreme(const Dim& dim, const Term& term);
  std::vector<bool> opposing_terms(const std::vector<Term>& terms);
  void add_trends(const Dim& dim, Trends& to);
  void add_trends(const Term& term, Trends& to);
  const Trends& trends_of(const AtomPtr& atom);

  RangeLookup of_symbol_;
  int64_t budget_ = 0;
  std::unordered_map<AtomPtr, Interval> known_;
  std::vector<AtomPtr> vague_;  // of those known, the ones that this question had no budget left for
  std::unordered_map<AtomPtr, Trends> trends_;
  ByName<uint32_t> numbers_;  // of symbols
};

}  // namespace rlx
