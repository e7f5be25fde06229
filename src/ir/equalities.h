// SPDX-License-Identifier: Apache-2.0
// What equations between sizes say of single symbols, by Gaussian elimination: each equation is solved for one symbol.
// So what they prove together does not depend on the order in which they came.
#pragma once

#include <optional>
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

// Ranges of symbols, learned one after the other. `time`, here and below: how many guards the scope had when this was
// learned, the new one included.
class SymbolRanges {
 public:
  // Learns that the symbol is in this range. False if that was known. `time` never falls from one call to the next.
  bool narrow(std::string_view symbol, Interval range, size_t time);
  Interval narrowed(std::string_view symbol, Interval range) const;  // without what is known to be impossible
  void forget_after(size_t time);                                    // what was learned later
  bool empty() const { return narrowings_.empty(); }

 private:
  struct Narrowing {
    std::string symbol;
    Interval before;
    size_t time;
  };

  ByName<Interval> ranges_;
  std::vector<Narrowing> narrowings_;  // in order
};

class Equalities {
 public:
  // Learns that the dim is 0. Returns the symbol for which this was solved, or null if there is none. Such a symbol
  // stands in one term only, alone in it, with a coefficient that divides all others, and is not solved yet. Long dims
  // are not solved. `time` never falls from one call to the next.
  const std::string* learn(const Dim& zero, size_t time);
  // For a symbol that is solved already, but by a formula that is not linear: if this equation gives a linear one, that
  // one replaces it. So n = min(1,m) and n = 1 give n = 1 in either order. The caller has replaced all symbols that
  // find_linear finds: `zero` names none of them.
  const std::string* learn_linear(const Dim& zero, size_t time);
  // Learns that the symbol is in this range, because one that equals it is. False if that was known.
  bool narrow(std::string_view symbol, Interval range, size_t time) { return ranges_.narrow(symbol, range, time); }
  // Takes note of a guard that says something of this dim. What is learned of a symbol may decide the guards that name
  // it; `watching` lists them, and those that name a symbol whose solution names it.
  void watch(const Dim& dim, uint32_t guard, size_t time);
  std::vector<uint32_t> watching(std::string_view symbol) const;
  void forget_after(size_t time);  // what was learned later

  const Dim* find(std::string_view symbol) const;         // its solution, which may name solved symbols; or null
  const Dim* find_linear(std::string_view symbol) const;  // the same if it is linear
  std::vector<std::string> depending_on(std::string_view symbol) const;  // itself, and the solved symbols that name it
  Interval narrowed(std::string_view symbol, Interval range) const { return ranges_.narrowed(symbol, range); }
  bool empty() const { return solved_.empty(); }

 private:
  const std::string* solve(const Dim& zero, const Term& term, size_t time);
  std::string_view standing_for(std::string_view symbol) const;
  void append(std::string_view symbol, std::span<const uint32_t> guards, std::span<const std::string> formulas,
              size_t time);

  struct Solving {
    std::string symbol;
    size_t time;
    std::optional<Dim> before;  // the solution that this one replaced
  };

  // The lists of a symbol that no other symbol stands for. When another one comes to stand for it, that one gets a copy
  // of its lists, and later entries. So equal symbols are one symbol here, and a walk does not meet each of them.
  struct Watched {
    std::vector<uint32_t> guards;
    std::vector<std::string> formulas;  // the symbols that are solved by a formula that names it
  };

  struct Appending {
    std::string symbol;
    size_t guards, formulas;  // how many there were
    size_t time;
  };

  ByName<Dim> solved_;
  ByName<std::vector<std::string>> named_by_;  // by symbol: those whose solutions name it, replaced ones as well
  std::vector<Solving> solvings_;              // in order
  SymbolRanges ranges_;                        // of symbols that equal others
  ByName<Watched> watched_;
  std::vector<Appending> appendings_;  // in order
};

}  // namespace rlx
