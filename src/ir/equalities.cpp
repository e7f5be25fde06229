// SPDX-License-Identifier: Apache-2.0
#include "ir/equalities.h"

#include <numeric>
#include <unordered_set>

namespace rlx {

// What all coefficients but that of the constant are multiples of, and the constant.
static std::pair<int64_t, int64_t> content(const Dim& dim) {
  int64_t divisor = 0, constant = 0;
  for (const Term& term : dim.polynomial()->terms)
    term.atoms.empty() ? constant = term.coefficient : divisor = std::gcd(divisor, term.coefficient);
  return {divisor, constant};
}

bool is_never_zero(const Dim& dim) {
  if (dim.is_literal()) return !dim.is(0);
  auto [divisor, constant] = content(dim);
  return constant % divisor != 0;
}

static bool names(const Dim& dim, std::string_view symbol) {
  bool found = false;
  visit_symbols(dim, [&](const std::string& name) { found |= name == symbol; });
  return found;
}

const std::string* Equalities::learn(const Dim& zero, size_t step) {
  constexpr int64_t kMostParts = 16;
  if (zero.is_literal() || zero.parts() > kMostParts || is_never_zero(zero)) return nullptr;
  int64_t divisor = content(zero).first;
  const std::string* last = nullptr;
  Dim solution;
  for (const Term& term : zero.polynomial()->terms) {
    if (term.atoms.size() != 1 || term.atoms[0]->kind != Atom::kSymbol) continue;
    if (term.coefficient != divisor && term.coefficient != -divisor) continue;
    const std::string& symbol = term.atoms[0]->name;
    Dim rest = zero - Dim::from({{term}});
    if ((last && symbol < *last) || names(rest, symbol)) continue;
    last = &symbol;
    solution = *exact_div(rest, -term.coefficient);
  }
  if (!last) return nullptr;
  visit_symbols(solution, [&](const std::string& name) { named_by_[name].push_back(*last); });
  order_.emplace_back(*last, step);
  return &solved_.emplace(*last, std::move(solution)).first->first;
}

void Equalities::forget_after(size_t step) {
  while (!order_.empty() && order_.back().second > step) {
    auto solved = solved_.find(order_.back().first);
    visit_symbols(solved->second, [&](const std::string& name) { named_by_.at(name).pop_back(); });
    solved_.erase(solved);
    order_.pop_back();
  }
}

const Dim* Equalities::find(std::string_view symbol) const {
  auto found = solved_.find(symbol);
  return found == solved_.end() ? nullptr : &found->second;
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
