// SPDX-License-Identifier: Apache-2.0
// The range of a dim, given those of its symbols.
#include <algorithm>
#include <limits>
#include <optional>

#include "base/dim_memo.h"
#include "base/dim_parts.h"

namespace rlx {

using saturating::add, saturating::divide_down, saturating::kLimit, saturating::multiply;

// An end that has saturated stands for all numbers beyond it, so it does not move: 2^62 minus 1 is still no bound.
static Interval add(Interval a, Interval b) {
  bool falls = a.lo <= -kLimit || b.lo <= -kLimit, rises = a.hi >= kLimit || b.hi >= kLimit;
  return {falls ? -kLimit : add(a.lo, b.lo), rises ? kLimit : add(a.hi, b.hi)};
}

static Interval multiply(Interval a, Interval b) {
  int64_t corners[] = {multiply(a.lo, b.lo), multiply(a.lo, b.hi), multiply(a.hi, b.lo), multiply(a.hi, b.hi)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

static Interval divide_down_by_positive(Interval a, Interval b) {
  bool falls = a.lo <= -kLimit, rises = a.hi >= kLimit;
  int64_t most = b.hi >= kLimit ? std::numeric_limits<int64_t>::max() : b.hi;
  return {falls ? -kLimit : std::min(divide_down(a.lo, b.lo), divide_down(a.lo, most)),
          rises ? kLimit : std::max(divide_down(a.hi, b.lo), divide_down(a.hi, most))};
}

// No run divides by 0: it fails. So the divisor is at least 1, or at most -1. If it can only be 0, no run has the size.
static Interval divide_down(Interval a, Interval b) {
  std::optional<Interval> range;
  if (b.hi >= 1) range = divide_down_by_positive(a, {std::max<int64_t>(b.lo, 1), b.hi});
  if (b.lo <= -1) {
    Interval other = divide_down_by_positive({-a.hi, -a.lo}, {std::max<int64_t>(-b.hi, 1), -b.lo});
    range = range ? Interval{std::min(range->lo, other.lo), std::max(range->hi, other.hi)} : other;
  }
  return range.value_or(Interval{0, 0});
}

// ---- sums whose terms depend on each other ----

// A remainder or an extreme is examined together with all other terms of its sum. Without a budget, the time would grow
// with the factorial of their number.
constexpr int64_t kBudget = 512;

bool Ranges::spend(const Dim& sum) {
  constexpr int64_t kLeast = 16;  // so that short sums, too, are examined at most 32 times
  budget_ -= std::max(kLeast, static_cast<int64_t>(sum.polynomial()->terms.size()));
  return budget_ >= 0;
}

// k a - k b floor(a/b) is k times a remainder, which is 0 to b - 1. Other terms may stand beside it.
std::optional<Interval> Ranges::range_by_remainder(const Dim& dim, const AtomPtr& quotient) {
  if (!spend(dim)) return std::nullopt;
  Polynomial factor, other;  // the factor of the quotient; the terms that do not contain it
  for (Term term : dim.polynomial()->terms) {
    auto at =
        std::find_if(term.atoms.begin(), term.atoms.end(), [&](const AtomPtr& it) { return !compare(*it, *quotient); });
    bool is_factor = at != term.atoms.end();
    if (is_factor) term.atoms.erase(at);
    (is_factor ? factor : other).terms.push_back(std::move(term));
  }
  auto k = exact_div(Dim::from(std::move(factor)), quotient->b);
  Interval b = range(quotient->b);
  if (!k || !k->is_literal() || b.lo <= 0) return std::nullopt;
  size_t terms = dim.polynomial()->terms.size();
  Dim rest = Dim::from(std::move(other)) + *k * quotient->a;
  if (!rest.is_literal() && rest.polynomial()->terms.size() >= terms) return std::nullopt;
  Interval beside = range(rest);
  int64_t last = multiply(-k->literal(), b.hi >= kLimit ? kLimit : b.hi - 1);
  return add(beside, {std::min<int64_t>(last, 0), std::max<int64_t>(last, 0)});
}

// If k > 0, a dim with the term k max(a, b) is the larger of the same dim with k a and with k b in its place; else the
// smaller. There a and b may cancel with the other terms.
std::optional<Interval> Ranges::range_by_extreme(const Dim& dim, const Term& term) {
  const Atom& extreme = *term.atoms[0];
  if (!spend(dim)) return std::nullopt;
  Dim rest = dim - Dim::from({{term}});
  Interval a = range(rest + Dim(term.coefficient) * extreme.a);
  Interval b = range(rest + Dim(term.coefficient) * extreme.b);
  bool is_larger = (extreme.kind == Atom::kMax) == (term.coefficient > 0);
  return is_larger ? Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)}
                   : Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}

// ---- terms that move in opposite directions ----

namespace {

using Symbols = std::vector<uint64_t>;

void insert(const Symbols& more, Symbols& into) {
  if (into.size() < more.size()) into.resize(more.size());
  for (size_t i = 0; i < more.size(); i++) into[i] |= more[i];
}

// The symbols that some term names, and those that several do.
struct Named {
  Symbols any, several;

  void add(const Symbols& term) {
    any.resize(std::max(any.size(), term.size())), several.resize(any.size());
    for (size_t i = 0; i < term.size(); i++) several[i] |= any[i] & term[i], any[i] |= term[i];
  }
  // Whether a term names one of these symbols, apart from the term that names `own`.
  bool elsewhere(const Symbols& symbols, const Symbols& own) const {
    for (size_t i = 0; i < symbols.size() && i < any.size(); i++) {
      uint64_t others = several[i] | (i < own.size() ? any[i] & ~own[i] : any[i]);
      if (symbols[i] & others) return true;
    }
    return false;
  }
};

}  // namespace

static bool is_symbol(const AtomPtr& atom) {
  return atom->kind == Atom::kSymbol;
}

const Ranges::Trends& Ranges::trends_of(const AtomPtr& atom) {
  if (auto found = trends_.find(atom); found != trends_.end()) return found->second;
  Trends trends;
  if (is_symbol(atom)) {
    uint32_t number = numbers_.emplace(atom->name, static_cast<uint32_t>(numbers_.size())).first->second;
    trends.rising.resize(number / 64 + 1);
    trends.rising[number / 64] = uint64_t{1} << (number % 64);
  } else {
    add_trends(atom->a, trends);
    add_trends(atom->b, trends);
    bool is_quotient = atom->kind == Atom::kFloorDiv && atom->b.is_literal() && atom->b.literal() > 0;
    if (atom->kind == Atom::kProduct || (atom->kind == Atom::kFloorDiv && !is_quotient)) trends.set_unclear();
  }
  return trends_.emplace(atom, std::move(trends)).first->second;
}

void Ranges::add_trends(const Term& term, Trends& to) {
  Trends trends;
  for (const AtomPtr& atom : term.atoms) {
    const Trends& more = trends_of(atom);
    insert(more.rising, trends.rising), insert(more.falling, trends.falling);
  }
  // A symbol is not negative, so a product of symbols rises with each.
  if (term.atoms.size() > 1 && !std::ranges::all_of(term.atoms, is_symbol)) trends.set_unclear();
  if (term.coefficient < 0) std::swap(trends.rising, trends.falling);
  insert(trends.rising, to.rising), insert(trends.falling, to.falling);
}

void Ranges::add_trends(const Dim& dim, Trends& to) {
  if (dim.is_literal()) return;
  for (const Term& term : dim.polynomial()->terms) add_trends(term, to);
}

void Ranges::Trends::set_unclear() {
  insert(falling, rising);
  falling = rising;
}

// For each term whether it rises with a symbol that another term falls with, or the other way around. Where none does,
// the sum is at its least when each term is.
std::vector<bool> Ranges::opposing_terms(const std::vector<Term>& terms) {
  std::vector<Trends> trends(terms.size());
  Named rising, falling;
  for (size_t i = 0; i < terms.size(); i++) {
    add_trends(terms[i], trends[i]);
    rising.add(trends[i].rising), falling.add(trends[i].falling);
  }
  std::vector<bool> opposing;
  for (const Trends& it : trends)
    opposing.push_back(falling.elsewhere(it.rising, it.falling) || rising.elsewhere(it.falling, it.rising));
  return opposing;
}

// ---- dims ----

Interval Ranges::range_of_new(const Atom& atom) {
  Interval a = range(atom.a), b = range(atom.b);
  if (atom.kind == Atom::kMax) return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  if (atom.kind == Atom::kMin) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  if (atom.kind == Atom::kProduct) return multiply(a, b);
  return divide_down(a, b);
}

Interval Ranges::range(const AtomPtr& atom) {
  if (atom->kind == Atom::kSymbol) return of_symbol_(atom->name);
  if (auto found = known_.find(atom); found != known_.end()) return found->second;
  Interval range = range_of_new(*atom);
  if (budget_ <= 0) vague_.push_back(atom);
  return known_[atom] = range;
}

Interval Ranges::range(const Dim& dim) {
  if (dim.is_literal()) return {dim.literal(), dim.literal()};
  const std::vector<Term>& terms = dim.polynomial()->terms;
  size_t symbolic = terms.size() - terms.back().atoms.empty();  // a number comes last
  bool may_oppose = symbolic > 1 && budget_ > 0 && std::any_of(terms.begin(), terms.end(), is_extreme);
  std::vector<bool> opposes = may_oppose ? opposing_terms(terms) : std::vector<bool>(terms.size());
  Interval sum{0, 0}, known{-kLimit, kLimit};
  for (size_t i = 0; i < terms.size(); i++) {
    Interval product{terms[i].coefficient, terms[i].coefficient};
    for (const AtomPtr& atom : terms[i].atoms) {
      product = multiply(product, range(atom));
      std::optional<Interval> narrower;
      if (atom->kind == Atom::kFloorDiv) narrower = range_by_remainder(dim, atom);
      if (opposes[i] && is_extreme(terms[i])) narrower = range_by_extreme(dim, terms[i]);
      if (narrower) known = intersection(known, *narrower);
    }
    sum = add(sum, product);
  }
  return intersection(sum, known);
}

Interval Ranges::of(const Dim& dim) {
  budget_ = kBudget;
  Interval found = range(dim);
  for (const AtomPtr& atom : vague_) known_.erase(atom);
  vague_.clear();
  return found;
}

Interval range_of(const Dim& dim, const RangeLookup& ranges) {
  if (dim.is_literal()) return {dim.literal(), dim.literal()};
  return Ranges(ranges).of(dim);
}

}  // namespace rlx
