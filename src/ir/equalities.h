// SPDX-License-Identifier: Apache-2.0
// What equations between sizes say of single symbols, by Gaussian elimination: each equation is solved for one symbol.
// So what they prove together does not depend on the order in which they came.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dim.h"
#include "base/hash.h"

namespace rlx {

// Whether no integers make it 0: 2*n - 4*m + 1.
bool is_never_zero(const Dim& dim);

class Equalities {
 public:
  // Learns that the dim is 0. Returns the symbol for which this was solved: one that stands alone, times 1 or -1. Null
  // if there is none, or if its solution would be long. `step` never falls from one call to the next.
  const std::string* learn(const Dim& zero, size_t step);
  // Learns that the symbol is in this range, because one that equals it is. False if that was known.
  bool narrow(std::string_view symbol, Interval range, size_t step);
  void forget_after(size_t step);  // what later steps have taught

  const Dim* find(std::string_view symbol) const;  // its solution, which may name solved symbols; or null
  std::vector<std::string> depending_on(std::string_view symbol) const;  // itself, and the solved symbols that name it
  Interval narrowed(std::string_view symbol, Interval range) const;      // without what is known to be impossible
  bool empty() const { return solved_.empty(); }

 private:
  template <class T>
  using BySymbol = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

  struct Narrowing {
    std::string symbol;
    Interval before;
    size_t step;
  };

  BySymbol<Dim> solved_;
  BySymbol<std::vector<std::string>> named_by_;        // by symbol: the solved ones whose solutions name it
  std::vector<std::pair<std::string, size_t>> order_;  // of solving: symbol, step
  BySymbol<Interval> ranges_;                          // of symbols that equal others
  std::vector<Narrowing> narrowings_;                  // in order
};

}  // namespace rlx
