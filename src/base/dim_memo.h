// SPDX-License-Identifier: Apache-2.0
// Values and ranges for many questions about dims at the same sizes. The dims of a graph share most of their parts, so
// what was found for a part answers the next question too.
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
  Interval of(const Dim& dim);  // as range_of, or narrower

 private:
  // The symbols that a dim rises with, and those that it falls with: a bit for each, by their numbers. In both where it
  // may do either.
  struct Moves {
    std::vector<uint64_t> up, down;
    void may_be_either();
  };
  bool spend(const Dim& sum);
  Interval range(const Dim& dim);
  Interval range(const AtomPtr& atom);
  Interval range_of_new(const Atom& atom);
  std::optional<Interval> range_by_remainder(const Dim& dim, const AtomPtr& quotient);
  std::optional<Interval> range_by_extreme(const Dim& dim, const Term& term);
  std::vector<bool> opposing_terms(const std::vector<Term>& terms);
  void add_moves(const Dim& dim, Moves& to);
  void add_moves(const Term& term, Moves& to);
  const Moves& moves_of(const AtomPtr& atom);

  RangeLookup of_symbol_;
  int64_t budget_ = 0;
  std::unordered_map<AtomPtr, Interval> known_;
  std::vector<AtomPtr> vague_;  // of those known, the ones that this question had no budget left for
  std::unordered_map<AtomPtr, Moves> moves_;
  ByName<uint32_t> numbers_;  // of symbols
};

}  // namespace rlx
