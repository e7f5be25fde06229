// SPDX-License-Identifier: Apache-2.0
#include "plan/early_guards.h"

#include <cstdlib>
#include <numeric>
#include <unordered_map>

namespace rlx {

namespace {

// How a dim names a symbol.
struct Naming {
  int64_t coefficient = 0;  // of the term that is the symbol alone
  bool is_elsewhere = false;
};

Naming naming(const Dim& dim, std::string_view symbol) {
  Naming found;
  if (dim.is_literal()) return found;
  for (const Term& term : dim.polynomial()->terms) {
    bool is_alone = term.atoms.size() == 1 && term.atoms[0]->kind == Atom::kSymbol;
    if (is_alone && term.atoms[0]->name == symbol)
      found.coefficient = term.coefficient;
    else if (!is_alone)
      visit_symbols(Dim::from({{term}}), [&](const std::string& name) { found.is_elsewhere |= name == symbol; });
  }
  return found;
}

// Eliminates the sizes that the run finds, one after the other.
class Elimination {
 public:
  explicit Elimination(const Plan& plan) : plan_(plan) {
    const Graph& graph = plan.graph();
    for (const Guard& guard : graph.guards()) {
      Dim difference = guard.b - guard.a;
      if (plan.known_at(difference) == PlanSymbol::kGiven) continue;
      bool is_equation = graph.implies(Guard::kEqual, guard.a, guard.b);  // a <= b where b <= a is another guard
      add({is_equation ? Guard::kEqual : guard.relation, std::move(difference), guard.where});
    }
    limit_ = 4 * facts_.size() + 64;
  }

  std::vector<Guard> run() {
    if (facts_.empty()) return {};
    for (const PlanSymbol& symbol : plan_.symbols)
      if (symbol.is_fresh()) eliminate(symbol);
    return std::move(early_);
  }

 private:
  struct Fact {
    Guard::Relation relation;
    Dim difference;  // is 0, or is not negative
    std::string where;
    bool is_gone = false;
  };

  // Keeps a fact that names sizes which the run finds. One that names only others is a result, if it comes of those.
  void add(Fact fact, bool is_result = false) {
    constexpr int64_t kMaxParts = 64;
    bool is_pending = plan_.known_at(fact.difference) != PlanSymbol::kGiven;
    if (fact.difference.parts() > kMaxParts) return;
    if (!is_pending && is_result) add_early(fact);
    if (!is_pending) return;
    auto index = static_cast<uint32_t>(facts_.size());
    visit_symbols(fact.difference, [&](const std::string& name) {
      std::vector<uint32_t>& list = naming_[name];
      if (list.empty() || list.back() != index) list.push_back(index);
    });
    facts_.push_back(std::move(fact));
  }

  void add_early(const Fact& fact) {
    const Graph& graph = plan_.graph();
    bool is_known = fact.relation == Guard::kEqual ? fact.difference.is(0) : graph.range(fact.difference).lo >= 0;
    if (is_known) return;
    Guard guard{fact.relation, 0, 0, fact.where, true};
    if (fact.difference.is_literal()) {
      guard.b = fact.difference;
    } else {
      for (const Term& term : fact.difference.polynomial()->terms)
        (term.coefficient > 0 ? guard.b : guard.a) += Dim::from({{{std::abs(term.coefficient), term.atoms}}});
    }
    early_.push_back(std::move(guard));
  }

  // The equation that is solved for the symbol.
  Fact* equation_for(const std::string& symbol) {
    Fact* found = nullptr;
    for (uint32_t index : naming_[symbol]) {
      Fact& fact = facts_[index];
      Naming it = naming(fact.difference, symbol);
      if (fact.is_gone || fact.relation != Guard::kEqual || it.coefficient == 0 || it.is_elsewhere) continue;
      if (std::abs(it.coefficient) == 1) return &fact;
      if (!found) found = &fact;
    }
    return found;
  }

  void eliminate(const PlanSymbol& symbol) {
    Fact* equation = equation_for(symbol.name);
    if (!equation || facts_.size() > limit_) return;
    equation->is_gone = true;
    Dim zero = equation->difference, size = Dim::symbol(symbol.name);
    int64_t coefficient = naming(zero, symbol.name).coefficient;
    if (coefficient < 0) zero = Dim(-1) * zero, coefficient = -coefficient;
    auto replaced = [&](const Fact& fact) {
      add({fact.relation, without(fact.difference, symbol.name, zero, coefficient), fact.where}, true);
    };
    std::string where = equation->where;
    std::vector<uint32_t> reading = naming_[symbol.name];
    for (uint32_t index : reading) {
      if (facts_[index].is_gone) continue;
      facts_[index].is_gone = true;
      replaced(Fact(facts_[index]));
    }
    replaced({Guard::kLessEqual, size - symbol.range.lo, where});
    if (symbol.range.hi < Interval::kUnbounded) replaced({Guard::kLessEqual, symbol.range.hi - size, where});
  }

  // A multiple of the difference from which the symbol is gone, where that can be; else the difference. The coefficient
  // of the symbol in `zero` is positive.
  static Dim without(const Dim& difference, const std::string& symbol, const Dim& zero, int64_t coefficient) {
    constexpr int64_t kMost = 4096;
    Naming it = naming(difference, symbol);
    if (coefficient == 1) {
      Dim solution = Dim::symbol(symbol) - zero;
      return substitute(difference,
                        [&](std::string_view name) { return name == symbol ? std::optional(solution) : std::nullopt; });
    }
    int64_t shared = std::gcd(coefficient, it.coefficient), of_zero = it.coefficient / shared;
    coefficient /= shared;
    if (it.is_elsewhere || coefficient > kMost || std::abs(of_zero) > kMost) return difference;
    return Dim(coefficient) * difference - Dim(of_zero) * zero;
  }

  const Plan& plan_;
  std::vector<Fact> facts_;
  std::unordered_map<std::string, std::vector<uint32_t>> naming_;  // by symbol
  size_t limit_ = 0;
  std::vector<Guard> early_;
};

}  // namespace

std::vector<Guard> early_guards(const Plan& plan) {
  return Elimination(plan).run();
}

}  // namespace rlx
