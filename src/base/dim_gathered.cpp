// SPDX-License-Identifier: Apache-2.0
// r + max(a, b) = max(r + a, r + b), and r - max(a, b) = min(r - a, r - b). Terms of r move into the max where they
// cancel with a term of a or b. Invariant: every step leaves fewer parts.
#include "base/dim_gathered.h"

#include <algorithm>

#include "base/dim_parts.h"

namespace rlx {

static int64_t coefficient_of(const std::vector<AtomPtr>& atoms, const Dim& sum) {
  if (sum.is_literal()) return 0;
  auto is_same = [](const AtomPtr& a, const AtomPtr& b) { return compare(*a, *b) == 0; };
  for (const Term& term : sum.polynomial()->terms)
    if (std::ranges::equal(term.atoms, atoms, is_same)) return term.coefficient;
  return 0;
}

// max(a, b), -max(a, b), and so for min.
static bool is_bare_extreme(const Term& term) {
  return is_extreme(term) && (term.coefficient == 1 || term.coefficient == -1);
}

// The terms beside the extreme that cancel with one of its operands.
static Dim moving_terms(const Dim& sum, const Term& extreme) {
  Polynomial moving;
  const Atom& atom = *extreme.atoms[0];
  for (const Term& term : sum.polynomial()->terms) {
    if (&term == &extreme || term.atoms.empty()) continue;
    int64_t opposite = -extreme.coefficient * term.coefficient;
    if (coefficient_of(term.atoms, atom.a) == opposite || coefficient_of(term.atoms, atom.b) == opposite)
      moving.terms.push_back(term);
  }
  return Dim::from(std::move(moving));
}

static Dim with_moved(const Dim& sum, const Term& extreme, Dim moving) {
  const Atom& atom = *extreme.atoms[0];
  Dim rest = sum - Dim::from({{extreme}}) - moving;
  if (rest.is_literal()) moving += rest, rest = 0;  // a number alone moves too
  Dim sign = extreme.coefficient, a = moving + sign * atom.a, b = moving + sign * atom.b;
  bool is_max = (atom.kind == Atom::kMax) == (extreme.coefficient > 0);
  return rest + (is_max ? max(a, b) : min(a, b));
}

// With the terms beside one of its extremes moved into it, or nullopt if none has any to move.
static std::optional<Dim> shorter(const Dim& sum) {
  if (sum.is_literal()) return std::nullopt;
  for (const Term& term : sum.polynomial()->terms) {
    if (!is_bare_extreme(term)) continue;
    Dim moving = moving_terms(sum, term);
    if (moving.is(0)) continue;
    if (Dim made = with_moved(sum, term, std::move(moving)); made.parts() < sum.parts()) return made;
  }
  return std::nullopt;
}

Dim gathered(const Dim& sum) {
  Dim now = sum;
  while (auto next = shorter(now)) now = *std::move(next);
  return now;
}

Dim gathered_throughout(const Dim& dim) {
  return gathered(rewritten(dim, [](Atom::Kind kind, const Dim& a, const Dim& b) -> std::optional<Dim> {
    return combined(kind, gathered(a), gathered(b));
  }));
}

}  // namespace rlx
