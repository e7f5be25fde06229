// SPDX-License-Identifier: Apache-2.0
// What is known of sizes: symbols, their ranges, and guards. Scopes nest as bodies do: what one says holds in those
// within it. A scope grows; what was added on trial is taken back (`roll_back`).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/dim.h"
#include "base/status.h"
#include "ir/equalities.h"

namespace rlx {

// A condition on sizes that could not be proved at build (semantics.md G1); checked as soon as a run knows its sizes.
struct Guard {
  enum Relation : uint8_t { kEqual, kLessEqual } relation;
  Dim a, b;
  std::string where;        // the node, for the message
  bool is_derived = false;  // it follows from nodes and other guards, and would follow again at other sizes
  bool operator==(const Guard& other) const { return relation == other.relation && a == other.a && b == other.b; }
};
std::string text_of(const Guard& guard);  // "batch = n" or "n <= 512"
inline bool holds(Guard::Relation relation, int64_t a, int64_t b) {
  return relation == Guard::kEqual ? a == b : a <= b;
}

void visit_symbols(const Guard& guard, VisitSymbol visit);

class SizeScope {
 public:
  // `around`: what it says holds here too, without a copy. It must outlive this one. May be null.
  explicit SizeScope(const SizeScope* around = nullptr) : around_(around) {}

  // Symbols, in the order of their declaration. Declaring again intersects the ranges; an empty range is RLX_E_RANGE.
  Status declare_symbol(std::string_view name, Interval range);
  const std::vector<std::pair<std::string, Interval>>& symbols() const { return symbols_; }  // of this scope alone
  Interval symbol_range(std::string_view name) const;  // [0, unbounded] for an undeclared symbol
  bool has_symbol(std::string_view name) const;
  Interval range(const Dim& dim) const;           // an open symbol is at most kLargestSymbol
  Interval declared_range(const Dim& dim) const;  // an open end stays open
  Dim not_negative(const Dim& dim) const;         // max(0, dim), or the dim where ranges prove it

  // Dropped where ranges or guards prove it. RLX_E_SHAPE where ranges and the guards so far refute it;
  // RLX_E_UNSUPPORTED if a dim has more than Dim::kMaxParts parts. On failure the scope is as before.
  Status add_guard(Guard guard);
  Status declare_guard(Guard guard);  // the same, but kept as it is even where other guards prove it
  const std::vector<Guard>& guards() const { return guards_; }               // of this scope alone
  bool implies(Guard::Relation relation, const Dim& a, const Dim& b) const;  // by ranges and guards
  // The dim, simplified by all ranges and guards: min and max of sizes whose order is known become one of the two.
  Dim resolved(const Dim& dim) const;

  // A point to which roll_back returns: it removes later guards and symbols, and restores ranges that were narrowed and
  // `is_derived` of earlier guards.
  struct Mark {
    size_t symbols, guards, narrowed, rederived;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const { return {symbols_.size(), guards_.size(), narrowed_.size(), rederived_.size()}; }
  void roll_back(const Mark& mark);
  void remove_symbols(const std::set<std::string>& names);  // no guard names them; earlier marks become invalid

 private:
  class Proof;
  struct GuardKeys {
    size_t difference;           // of guard_index_
    std::vector<size_t> orders;  // of undecided_
  };
  const std::pair<std::string, Interval>* find_symbol(std::string_view name) const;
  std::optional<uint32_t> find_guard(Guard::Relation relation, const Dim& difference) const;  // of this scope alone
  bool has_guard(Guard::Relation relation, const Dim& difference) const;
  Dim reduced(const Dim& dim) const;  // each symbol that guards equal to others, or to a number, is in their terms
  Dim reduced(const Dim& dim, const Dim* (Equalities::*find)(std::string_view) const) const;  // by these solutions only
  Interval range_of_reduced(const Dim& dim) const;
  static Interval bounded(Interval range);  // an open end becomes kLargestSymbol
  bool narrows_ranges() const;              // whether a guard narrows the range of a symbol
  Guard resolved(const Guard& guard) const;
  Result<Guard> checked(Guard guard) const;
  Status record(const Guard& guard, Guard normal);
  Status record_alone(Guard guard);
  bool is_refuted(const Guard& guard) const;
  bool is_equation(const Guard& guard) const;
  const std::string* solve(const Guard& guard);
  bool is_settled(const Guard& guard) const;
  static GuardKeys keys_of(const Guard& guard);
  void set_derived(uint32_t guard, bool is_derived);
  void forget_last_guard(const GuardKeys& keys);
  Status learn(uint32_t index);
  void learn_range(const Guard& guard);

  const SizeScope* around_;
  std::vector<std::pair<std::string, Interval>> symbols_;
  ByName<uint32_t> symbol_index_;
  std::vector<std::pair<uint32_t, Interval>> narrowed_;  // symbol, and its earlier range: for roll_back
  std::vector<Guard> guards_;
  std::vector<std::pair<uint32_t, bool>> rederived_;       // guard, and its earlier is_derived: for roll_back
  std::unordered_multimap<size_t, uint32_t> guard_index_;  // by the hash of the difference b - a
  std::unordered_multimap<size_t, uint32_t> undecided_;    // by the hash of what would decide a min or max of a guard
  Equalities equalities_;                                  // that guards say
  SymbolRanges by_guards_;                                 // what guards of one symbol say of it
};

}  // namespace rlx
