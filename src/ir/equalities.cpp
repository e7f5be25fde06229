// SPDX-License-Identifier: Apache-2.0
// A solution is kept as it was learned: nothing is substituted into it. So what later equations have taught can be
// forgotten, one after the other from the end, and a reader of solutions follows chains of symbols.
#include "ir/equalities.h"

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "base/contains.h"

namespace rlx {

Interval SymbolRanges::narrowed(std::string_view symbol, Interval range) const {
  auto found = ranges_.find(symbol);
  return found == ranges_.end() ? range : intersection(range, found->second);
}

bool SymbolRanges::narrow(std::string_view symbol, Interval range, size_t time) {
  Interval& known = ranges_.emplace(symbol, Interval()).first->second;
  Interval both = narrowed(symbol, range);
  if (both == known) return false;
  narrowings_.push_back({std::string(symbol), known, time});
  known = both;
  return true;
}

void SymbolRanges::forget_after(size_t time) {
  for (; !narrowings_.empty() && narrowings_.back().time > time; narrowings_.pop_back())
    ranges_.find(narrowings_.back().symbol)->second = narrowings_.back().before;
}

// The greatest common divisor of all coefficients but the constant, and the constant.
static std::pair<int64_t, int64_t> content(const Dim& dim) {
  int64_t divisor = 0, constant = 0;
  for (const Term& term : dim.polynomial()->terms) {
    if (term.atoms.empty())
      constant = term.coefficient;
    else
      divisor = std::gcd(divisor, term.coefficient);
  }
  return {divisor, constant};
}

bool is_never_zero(const Dim& dim) {
  if (dim.is_literal()) return !dim.is(0);
  auto [divisor, constant] = content(dim);
  return constant % divisor != 0;
}

static bool is_linear(const Dim& dim) {
  return dim.is_literal() || std::ranges::all_of(dim.polynomial()->terms, [](const Term& term) {
           return term.atoms.empty() || (term.atoms.size() == 1 && term.atoms[0]->kind == Atom::kSymbol);
         });
}

// The terms for whose symbols "the dim is 0" can be solved.
static std::vector<const Term*> solvable_terms(const Dim& zero) {
  constexpr int64_t kMaxParts = 16;
  if (zero.is_literal() || zero.parts() > kMaxParts || is_never_zero(zero)) return {};
  int64_t divisor = content(zero).first;
  std::vector<const Term*> found;
  for (const Term& term : zero.polynomial()->terms) {
    bool is_symbol = term.atoms.size() == 1 && term.atoms[0]->kind == Atom::kSymbol;
    if (!is_symbol || (term.coefficient != divisor && term.coefficient != -divisor)) continue;
    if (!names(zero - Dim::from({{term}}), term.atoms[0]->name)) found.push_back(&term);
  }
  return found;
}

namespace {

// A walk over all symbols whose solutions depend on the symbol of a term.
struct DependentWalk {
  const Term* term;
  std::vector<std::string_view> found;
  std::unordered_set<std::string_view> seen;
  size_t at = 0, next = 0;  // the position in `found`, and in the list of those that name it
};

}  // namespace

// If several symbols stand alone, the equation is solved for the one on which the fewest others depend; of equals, for
// the last by name. So chains of solutions stay short, and a symbol gets a new final solution only a few times, in
// whatever order the equations of a long chain come.
const std::string* Equalities::learn(const Dim& zero, size_t time) {
  std::vector<DependentWalk> walks;
  for (const Term* term : solvable_terms(zero))
    if (const std::string& name = term->atoms[0]->name; !find(name)) walks.push_back({term, {name}, {name}});
  if (walks.empty()) return nullptr;
  std::sort(walks.begin(), walks.end(),
            [](const DependentWalk& a, const DependentWalk& b) { return a.found[0] > b.found[0]; });
  auto advance = [&](DependentWalk& walk) {
    for (; walk.at < walk.found.size(); walk.at++, walk.next = 0) {
      auto named = named_by_.find(walk.found[walk.at]);
      if (named == named_by_.end() || walk.next == named->second.size()) continue;
      const std::string& name = named->second[walk.next++];
      if (walk.seen.insert(name).second) walk.found.emplace_back(name);
      return true;
    }
    return false;
  };
  auto shortest = walks.end();  // the walks advance in turn, so all of them stop with the shortest
  while (shortest == walks.end()) shortest = std::find_if_not(walks.begin(), walks.end(), advance);
  return solve(zero, *shortest->term, time);
}

const std::string* Equalities::learn_linear(const Dim& zero, size_t time) {
  if (!is_linear(zero)) return nullptr;
  for (const Term* term : solvable_terms(zero)) {
    const std::string& symbol = term->atoms[0]->name;
    if (!find(symbol)) continue;
    std::vector<std::string> dependents = depending_on(symbol);
    auto depends = [&](const std::string& name) { return contains(dependents, name); };
    bool is_circular = false;
    visit_symbols(zero - Dim::from({{*term}}), [&](const std::string& name) { is_circular |= depends(name); });
    if (!is_circular) return solve(zero, *term, time);
  }
  return nullptr;
}

const std::string* Equalities::solve(const Dim& zero, const Term& term, size_t time) {
  Dim solution = *exact_div(zero - Dim::from({{term}}), -term.coefficient);
  const std::string& symbol = term.atoms[0]->name;
  visit_symbols(solution, [&](const std::string& name) { named_by_[name].push_back(symbol); });
  if (const std::string* same = solution.symbol_name()) {
    Watched had = watched_[symbol];
    append(standing_for(*same), had.guards, had.formulas, time);
  } else {
    visit_symbols(solution, [&](const std::string& name) { append(standing_for(name), {}, {&symbol, 1}, time); });
  }
  auto [known, is_new] = solved_.try_emplace(symbol, solution);
  solvings_.push_back({symbol, time, is_new ? std::nullopt : std::optional(std::exchange(known->second, solution))});
  return &known->first;
}

// At the end of a chain of solutions that are one symbol each.
std::string_view Equalities::standing_for(std::string_view symbol) const {
  for (const Dim* solution = find(symbol); solution && solution->symbol_name(); solution = find(symbol))
    symbol = *solution->symbol_name();
  return symbol;
}

void Equalities::append(std::string_view symbol, std::span<const uint32_t> guards,
                        std::span<const std::string> formulas, size_t time) {
  auto [found, is_new] = watched_.try_emplace(std::string(symbol));
  Watched& watched = found->second;
  appendings_.push_back({found->first, watched.guards.size(), watched.formulas.size(), time});
  watched.guards.insert(watched.guards.end(), guards.begin(), guards.end());
  watched.formulas.insert(watched.formulas.end(), formulas.begin(), formulas.end());
}

void Equalities::watch(const Dim& dim, uint32_t guard, size_t time) {
  visit_symbols(dim, [&](const std::string& symbol) { append(standing_for(symbol), {&guard, 1}, {}, time); });
}

std::vector<uint32_t> Equalities::watching(std::string_view symbol) const {
  std::vector<uint32_t> guards;
  std::vector<std::string_view> symbols{symbol};
  std::unordered_set<std::string_view> seen{symbol};
  for (size_t i = 0; i < symbols.size(); i++) {
    auto found = watched_.find(symbols[i]);
    if (found == watched_.end()) continue;
    guards.insert(guards.end(), found->second.guards.begin(), found->second.guards.end());
    for (const std::string& name : found->second.formulas)
      if (seen.insert(name).second) symbols.push_back(name);
  }
  std::sort(guards.begin(), guards.end());
  guards.erase(std::unique(guards.begin(), guards.end()), guards.end());
  return guards;
}

void Equalities::forget_after(size_t time) {
  ranges_.forget_after(time);
  for (; !appendings_.empty() && appendings_.back().time > time; appendings_.pop_back()) {
    Watched& watched = watched_.find(appendings_.back().symbol)->second;
    watched.guards.resize(appendings_.back().guards);
    watched.formulas.resize(appendings_.back().formulas);
  }
  for (; !solvings_.empty() && solvings_.back().time > time; solvings_.pop_back()) {
    auto solved = solved_.find(solvings_.back().symbol);
    visit_symbols(solved->second, [&](const std::string& name) { named_by_.at(name).pop_back(); });
    if (solvings_.back().before)
      solved->second = *std::move(solvings_.back().before);
    else
      solved_.erase(solved);
  }
}

const Dim* Equalities::find(std::string_view symbol) const {
  auto found = solved_.find(symbol);
  return found == solved_.end() ? nullptr : &found->second;
}

const Dim* Equalities::find_linear(std::string_view symbol) const {
  const Dim* found = find(symbol);
  return found && is_linear(*found) ? found : nullptr;
}

std::vector<std::string> Equalities::depending_on(std::string_view symbol) const {
  std::vector<std::string> found{std::string(symbol)};
  std::unordered_set<std::string> seen{found[0]};
  for (size_t i = 0; i < found.size(); i++) {
    auto named = named_by_.find(found[i]);
    if (named == named_by_.end()) continue;
    for (const std::string& name : named->second)
      if (seen.insert(name).second) found.push_back(name);
  }
  return found;
}

}  // namespace rlx
