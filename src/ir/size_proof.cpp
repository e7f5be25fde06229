// SPDX-License-Identifier: Apache-2.0
#include "ir/size_proof.h"

#include <algorithm>

#include "base/dim_gathered.h"
#include "base/dim_parts.h"

namespace rlx {

SizeScope::Proof::Proof(const SizeScope& scope)
    : scope_(scope),
      corners_(scope),
      ranges_([this](std::string_view name) { return bounded(scope_.symbol_range(name)); }),
      ranges_by_guards_([this](std::string_view name) { return range_by_guards(name); }),
      narrows_ranges_(scope.narrows_ranges()) {}

// With what guards say of the single symbol.
Interval SizeScope::Proof::range_by_guards(std::string_view symbol) const {
  Interval range = bounded(scope_.symbol_range(symbol));
  for (const SizeScope* scope = &scope_; scope; scope = scope->around_) {
    Interval both = scope->by_guards_.narrowed(symbol, range);
    if (both.lo <= both.hi) range = both;  // else no size satisfies all guards
  }
  return range;
}

// Looks at the dims as given, without resolving them.
bool SizeScope::Proof::has_relation(Guard::Relation relation, const Dim& a, const Dim& b) {
  if (a == b) return true;
  Dim difference = b - a;
  if (scope_.has_guard(Guard::kEqual, difference)) return true;
  if (relation == Guard::kEqual) return false;
  return ranges_.of(difference).lo >= 0 || scope_.has_guard(Guard::kLessEqual, difference) ||
         (narrows_ranges_ && ranges_by_guards_.of(difference).lo >= 0);
}

// For a term k * min(a, b) or k * max(a, b) of a dim: whether "the dim is >= 0" requires it with a as well as with b in
// the place of the min or max. Otherwise it follows from either.
static bool needs_both_operands(const Term& term) {
  return (term.atoms[0]->kind == Atom::kMax) == (term.coefficient < 0);
}

// A term of the dim that is k * min(a, b) or k * max(a, b), or null. One that needs both operands comes first, because
// it narrows the proof without a choice.
static const Term* extreme_in(const Dim& dim) {
  if (dim.is_literal()) return nullptr;
  const Term* found = nullptr;
  for (const Term& term : dim.polynomial()->terms) {
    if (!is_extreme(term)) continue;
    if (needs_both_operands(term)) return &term;
    if (!found) found = &term;
  }
  return found;
}

constexpr int kExtremes = 4;  // how many min and max, one in the other, a proof takes apart

bool SizeScope::Proof::is_at_most(const Dim& a, const Dim& b, int depth) {
  Dim difference = b - a;
  if (has_relation(Guard::kLessEqual, 0, difference)) return true;
  const Term* extreme = depth > 0 ? extreme_in(difference) : nullptr;
  if (!extreme) return false;
  const Atom& atom = *extreme->atoms[0];
  Dim rest = difference - Dim::from({{*extreme}});
  auto holds_with = [&](const Dim& operand) { return is_at_most(0, rest + extreme->coefficient * operand, depth - 1); };
  return needs_both_operands(*extreme) ? holds_with(atom.a) && holds_with(atom.b)
                                       : holds_with(atom.a) || holds_with(atom.b);
}

bool SizeScope::Proof::proves(Guard::Relation relation, const Dim& a, const Dim& b) {
  if (relation == Guard::kLessEqual) return is_at_most(a, b, kExtremes);
  Dim difference = b - a;
  if (has_relation(Guard::kEqual, 0, difference)) return true;
  return has_relation(Guard::kLessEqual, 0, difference) && has_relation(Guard::kLessEqual, difference, 0);
}

// ---- corners ----

SizeScope::Proof::Corners::Corners(const SizeScope& scope) : scope_(scope) {
  for (const SizeScope* at = &scope; at; at = at->around_) keep_allowed_by(at->guards_);
}

bool SizeScope::Proof::Corners::refute(Guard::Relation relation, const Dim& a, const Dim& b) {
  for (size_t i = 0; i < 2; i++)
    if (is_allowed_[i] && holds_at(i, relation, a, b) == false) return true;
  return false;
}

void SizeScope::Proof::Corners::keep_allowed_by(const std::vector<Guard>& guards) {
  constexpr size_t kMost = 8;  // more of them hardly ever hold at a corner
  if (guards.size() > kMost) is_allowed_ = {false, false};
  for (size_t i = 0; i < 2; i++)
    is_allowed_[i] = is_allowed_[i] && std::ranges::all_of(guards, [&](const Guard& guard) {
                       return holds_at(i, guard.relation, guard.a, guard.b) == true;
                     });
}

// nullopt: sizes that are too large tell nothing.
std::optional<bool> SizeScope::Proof::Corners::holds_at(size_t corner, Guard::Relation relation, const Dim& a,
                                                        const Dim& b) {
  auto x = value(a, corner), y = value(b, corner);
  return x && y ? std::optional(holds(relation, *x, *y)) : std::nullopt;
}

std::optional<int64_t> SizeScope::Proof::Corners::value(const Dim& dim, size_t corner) {
  auto size_of = [&](std::string_view name) -> std::optional<int64_t> {
    Interval range = bounded(scope_.symbol_range(name));
    return corner == 0 ? range.lo : range.hi;
  };
  auto found = evaluate(dim, size_of, values_[corner]);
  bool is_exact = found.ok() && std::abs(*found) < Interval::kUnbounded;
  return is_exact ? std::optional(*found) : std::nullopt;
}

// ---- proofs ----

bool SizeScope::Proof::implies(Guard::Relation relation, const Dim& a, const Dim& b) {
  if (corners_.refute(relation, a, b)) return false;
  if (proves(relation, a, b)) return true;
  // Either may have fewer terms. Dims as given count too, because guards are recorded about them.
  Dim x = resolved(a), y = resolved(b);
  if ((x != a || y != b) && proves(relation, x, y)) return true;
  if (Dim p = scope_.reduced(a), q = scope_.reduced(b); p != a || q != b) {
    x = resolved(p), y = resolved(q);
    if (proves(relation, x, y)) return true;
  }
  if (relation != Guard::kEqual) return false;
  // Inference gathers what it knows by then, so a size has another form if a part of it is resolved only now.
  Dim p = gathered_throughout(x), q = gathered_throughout(y);
  return (p != x || q != y) && proves(relation, resolved(p), resolved(q));
}

// Ranges decide before guards. So what ranges prove alone has the same form whatever guards there are.
Dim SizeScope::Proof::resolved(const Dim& dim) {
  return rewritten(dim, [&](Atom::Kind kind, const Dim& a, const Dim& b) -> std::optional<Dim> {
    if (kind != Atom::kMax && kind != Atom::kMin) return std::nullopt;
    auto decided = [&](bool b_is_larger) { return b_is_larger == (kind == Atom::kMax) ? b : a; };
    bool may_be_more = corners_.refute(Guard::kLessEqual, a, b);
    bool may_be_less = corners_.refute(Guard::kLessEqual, b, a);
    if (may_be_more && may_be_less) return std::nullopt;
    Interval difference = ranges_.of(b - a);
    if (difference.lo >= 0 || difference.hi <= 0) return decided(difference.lo >= 0);
    // The operands are resolved already: resolving them again at each level would take exponential time.
    if (!may_be_more && is_at_most(a, b, kExtremes)) return decided(true);
    if (!may_be_less && is_at_most(b, a, kExtremes)) return decided(false);
    return std::nullopt;
  });
}

}  // namespace rlx
