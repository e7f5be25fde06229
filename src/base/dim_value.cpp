// SPDX-License-Identifier: Apache-2.0
// What a dim is in a run: its value, given the sizes of its symbols, and its range, given theirs.
#include "base/dim.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/dim_parts.h"

namespace rlx {

using saturating::add, saturating::divide_down, saturating::kLimit, saturating::multiply, saturating::saturate;

// ---- values ----

static Status too_large(const Dim& dim) {
  return Status(Code::kRange, "the size " + dim.text() + " has terms that are too large");
}

static Result<int64_t> multiply_exactly(const Atom& atom, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return too_large(atom.a * atom.b);
  return product;
}

static bool is_saturated(int64_t value) {
  return value >= kLimit || value <= -kLimit;
}

static Result<int64_t> divide_down(const Atom& atom, int64_t a, int64_t b) {
  if (b == 0) return Status(Code::kShape, "division by zero in the size " + atom.a.text() + " / " + atom.b.text());
  if (is_saturated(a)) return too_large(atom.a);
  return divide_down(a, b);
}

static Result<int64_t> evaluate(const Atom& atom, const SymbolLookup& sizes) {
  if (atom.kind == Atom::kSymbol) {
    if (auto size = sizes(atom.name)) return *size;
    return Status(Code::kShape, "the size of '" + atom.name + "' is not known").with("value", atom.name);
  }
  int64_t a = RLX_TRY(evaluate(atom.a, sizes)), b = RLX_TRY(evaluate(atom.b, sizes));
  if (atom.kind == Atom::kMax) return std::max(a, b);
  if (atom.kind == Atom::kMin) return std::min(a, b);
  if (atom.kind == Atom::kProduct) return multiply_exactly(atom, a, b);
  return divide_down(atom, a, b);
}

// Terms may be far larger than their sum, for example those of (n - k)^9. So only the sum saturates.
Result<int64_t> evaluate(const Dim& dim, const SymbolLookup& sizes) {
  if (dim.is_literal()) return dim.literal();
  __int128 sum = 0;
  bool overflows = false;
  for (const Term& term : dim.polynomial()->terms) {
    __int128 product = term.coefficient;
    for (const AtomPtr& atom : term.atoms)
      overflows |= __builtin_mul_overflow(product, __int128{RLX_TRY(evaluate(*atom, sizes))}, &product);
    overflows |= __builtin_add_overflow(sum, product, &sum);
  }
  if (overflows) return too_large(dim);
  return saturate(sum);
}

// ---- ranges ----

namespace {

struct Query {
  const RangeLookup& ranges;
  // How many terms may still be examined beside a remainder or an extreme. Each one examines all others beside it, so
  // without a budget the time would grow with the factorial of their number.
  int64_t budget = 512;
  std::unordered_map<AtomPtr, Interval> known = {};  // chains share what they nest
};

}  // namespace

static bool spend(Query& query, const Dim& sum) {
  constexpr int64_t kLeast = 16;  // so that short sums, too, are examined at most 32 times
  query.budget -= std::max(kLeast, static_cast<int64_t>(sum.polynomial()->terms.size()));
  return query.budget >= 0;
}

static Interval range_of(const Dim& dim, Query& query);

// An end that has saturated stands for all numbers beyond it, so it does not move: 2^62 minus 1 is still no bound.
static Interval add(Interval a, Interval b) {
  bool falls = a.lo <= -kLimit || b.lo <= -kLimit, rises = a.hi >= kLimit || b.hi >= kLimit;
  return {falls ? -kLimit : add(a.lo, b.lo), rises ? kLimit : add(a.hi, b.hi)};
}

static Interval multiply(Interval a, Interval b) {
  int64_t corners[] = {multiply(a.lo, b.lo), multiply(a.lo, b.hi), multiply(a.hi, b.lo), multiply(a.hi, b.hi)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

static Interval divide_down(Interval a, Interval b) {
  if (b.lo <= 0) return {-kLimit, kLimit};
  bool falls = a.lo <= -kLimit, rises = a.hi >= kLimit;
  int64_t most = b.hi >= kLimit ? std::numeric_limits<int64_t>::max() : b.hi;
  return {falls ? -kLimit : std::min(divide_down(a.lo, b.lo), divide_down(a.lo, most)),
          rises ? kLimit : std::max(divide_down(a.hi, b.lo), divide_down(a.hi, most))};
}

static Interval range_of_new(const Atom& atom, Query& query) {
  Interval a = range_of(atom.a, query), b = range_of(atom.b, query);
  if (atom.kind == Atom::kMax) return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
  if (atom.kind == Atom::kMin) return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
  if (atom.kind == Atom::kProduct) return multiply(a, b);
  return divide_down(a, b);
}

static Interval range_of(const AtomPtr& atom, Query& query) {
  if (atom->kind == Atom::kSymbol) return query.ranges(atom->name);
  if (auto found = query.known.find(atom); found != query.known.end()) return found->second;
  return query.known[atom] = range_of_new(*atom, query);
}

// k a - k b floor(a/b) is k times a remainder, which is 0 to b - 1. Other terms may stand beside it.
static std::optional<Interval> range_by_remainder(const Dim& dim, const AtomPtr& quotient, Query& query) {
  if (!spend(query, dim)) return std::nullopt;
  Polynomial factor, other;  // the factor of the quotient; the terms that do not contain it
  for (Term term : dim.polynomial()->terms) {
    auto at =
        std::find_if(term.atoms.begin(), term.atoms.end(), [&](const AtomPtr& it) { return !compare(*it, *quotient); });
    bool is_factor = at != term.atoms.end();
    if (is_factor) term.atoms.erase(at);
    (is_factor ? factor : other).terms.push_back(std::move(term));
  }
  auto k = exact_div(Dim::from(std::move(factor)), quotient->b);
  Interval b = range_of(quotient->b, query);
  if (!k || !k->is_literal() || b.lo <= 0) return std::nullopt;
  size_t terms = dim.polynomial()->terms.size();
  Dim rest = Dim::from(std::move(other)) + *k * quotient->a;
  if (!rest.is_literal() && rest.polynomial()->terms.size() >= terms) return std::nullopt;
  Interval beside = range_of(rest, query);
  int64_t last = multiply(-k->literal(), b.hi >= kLimit ? kLimit : b.hi - 1);
  return add(beside, {std::min<int64_t>(last, 0), std::max<int64_t>(last, 0)});
}

// If k > 0, a dim with the term k max(a, b) is the larger of the same dim with k a and with k b in its place; else the
// smaller. There a and b may cancel with the other terms.
static std::optional<Interval> range_by_extreme(const Dim& dim, const Term& term, Query& query) {
  const Atom& extreme = *term.atoms[0];
  if (!spend(query, dim)) return std::nullopt;
  Dim rest = dim - Dim::from({{term}});
  Interval a = range_of(rest + Dim(term.coefficient) * extreme.a, query);
  Interval b = range_of(rest + Dim(term.coefficient) * extreme.b, query);
  bool is_larger = (extreme.kind == Atom::kMax) == (term.coefficient > 0);
  return is_larger ? Interval{std::max(a.lo, b.lo), std::max(a.hi, b.hi)}
                   : Interval{std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
}

// For each term whether it names a symbol that another one names. Else its range beside the others is its range alone.
static std::vector<bool> sharing_terms(const std::vector<Term>& terms) {
  std::vector<bool> shares(terms.size());
  std::unordered_map<std::string_view, size_t> named_by;
  for (size_t i = 0; i < terms.size(); i++) {
    auto note = [&](const std::string& name) {
      size_t first = named_by.emplace(name, i).first->second;
      if (first != i) shares[first] = shares[i] = true;
    };
    for (const AtomPtr& atom : terms[i].atoms) {
      if (atom->kind == Atom::kSymbol) {
        note(atom->name);
        continue;
      }
      visit_symbols(atom->a, note);
      visit_symbols(atom->b, note);
    }
  }
  return shares;
}

static Interval range_of(const Dim& dim, Query& query) {
  if (dim.is_literal()) return {dim.literal(), dim.literal()};
  const std::vector<Term>& terms = dim.polynomial()->terms;
  size_t symbolic = terms.size() - terms.back().atoms.empty();  // a number comes last
  bool may_share = symbolic > 1 && query.budget > 0 && std::any_of(terms.begin(), terms.end(), is_extreme);
  std::vector<bool> shares = may_share ? sharing_terms(terms) : std::vector<bool>(terms.size());
  Interval sum{0, 0}, known{-kLimit, kLimit};
  for (size_t i = 0; i < terms.size(); i++) {
    Interval product{terms[i].coefficient, terms[i].coefficient};
    for (const AtomPtr& atom : terms[i].atoms) {
      product = multiply(product, range_of(atom, query));
      std::optional<Interval> range;
      if (atom->kind == Atom::kFloorDiv) range = range_by_remainder(dim, atom, query);
      if (shares[i] && is_extreme(terms[i])) range = range_by_extreme(dim, terms[i], query);
      if (range) known = intersection(known, *range);
    }
    sum = add(sum, product);
  }
  return intersection(sum, known);
}

Interval range_of(const Dim& dim, const RangeLookup& ranges) {
  Query query{ranges};
  return range_of(dim, query);
}

}  // namespace rlx
