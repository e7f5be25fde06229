// SPDX-License-Identifier: Apache-2.0
// Dims as polynomials: their canonical form, arithmetic and substitution.
#include "base/dim.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>

#include "base/dim_parts.h"
#include "base/hash.h"
#include "base/size_failure.h"

namespace rlx {

using saturating::add, saturating::divide_down, saturating::kLimit, saturating::multiply, saturating::saturate;

// ---- canonical order ----

int compare(const Atom& a, const Atom& b) {
  if (&a == &b) return 0;
  if (a.kind != b.kind) return a.kind < b.kind ? -1 : 1;
  if (a.kind == Atom::kSymbol) return a.name.compare(b.name);
  int first = Dim::compare(a.a, b.a);
  return first ? first : Dim::compare(a.b, b.b);
}

// Higher degree first, then by atoms: a monomial order, as polynomial division needs one.
static int compare_atoms(const std::vector<AtomPtr>& a, const std::vector<AtomPtr>& b) {
  if (a.size() != b.size()) return a.size() > b.size() ? -1 : 1;
  for (size_t i = 0; i < a.size(); i++)
    if (int order = compare(*a[i], *b[i])) return order;
  return 0;
}

int Dim::compare(const Dim& a, const Dim& b) {
  if (a.terms_ == b.terms_ && !a.terms_) return a.literal_ < b.literal_ ? -1 : a.literal_ > b.literal_;
  if (a.terms_ == b.terms_) return 0;
  if (!a.terms_ || !b.terms_) return a.terms_ ? 1 : -1;
  const auto &x = a.terms_->terms, &y = b.terms_->terms;
  for (size_t i = 0; i < std::min(x.size(), y.size()); i++) {
    if (int order = compare_atoms(x[i].atoms, y[i].atoms)) return order;
    if (x[i].coefficient != y[i].coefficient) return x[i].coefficient < y[i].coefficient ? -1 : 1;
  }
  return x.size() < y.size() ? -1 : x.size() > y.size();
}

bool Dim::has_terms_of(const Dim& other) const {
  if (!terms_ || !other.terms_) return false;
  return terms_ == other.terms_ || (terms_->hash == other.terms_->hash && compare(*this, other) == 0);
}

static size_t hash_of(const std::vector<Term>& terms, int64_t sign = 1) {
  size_t seed = 1;
  for (const Term& term : terms) {
    seed = hash_mix(seed, std::hash<int64_t>()(sign * term.coefficient));
    for (const AtomPtr& atom : term.atoms) seed = hash_mix(seed, atom->hash);
  }
  return seed;
}

static int64_t parts_of(const std::vector<Term>& terms) {
  int64_t parts = 0;
  for (const Term& term : terms)
    for (const AtomPtr& atom : term.atoms) parts = add(parts, add(1, add(atom->a.parts(), atom->b.parts())));
  return parts;
}

int64_t Dim::parts() const {
  return terms_ ? terms_->parts : 0;
}

Status check_parts(std::span<const Dim> dims) {
  for (const Dim& dim : dims)
    if (dim.parts() > Dim::kMaxParts)
      return Status(Code::kUnsupported, format("a size that is an expression of more than {} parts", Dim::kMaxParts))
          .with(kDependsOnSizes, "1");
  return {};
}

size_t hash_of_opposite(const Dim& dim) {
  if (dim.is_literal()) return (Dim(-1) * dim).hash();
  return hash_of(dim.polynomial()->terms, -1);  // the terms have the same order
}

size_t Dim::hash() const {
  return terms_ ? terms_->hash : std::hash<int64_t>()(literal_);
}

static std::vector<Term> terms_of(const Dim& dim) {
  if (const Polynomial* polynomial = dim.polynomial()) return polynomial->terms;
  if (dim.literal() == 0) return {};
  return {Term{saturate(dim.literal()), {}}};
}

// Whether the term is a multiple of max(a, b) or min(a, b), of short operands.
static bool is_short_extreme(const Term& term) {
  auto is_short = [](const Dim& dim) { return dim.is_literal() || dim.polynomial()->terms.size() <= 8; };
  return is_extreme(term) && is_short(term.atoms[0]->a) && is_short(term.atoms[0]->b);
}

// The sum of two terms whose pairs of operands are equal up to an offset. max(a, b) + min(a, b) = a + b, and the
// difference of two max (or two min) is the offset. So the sizes of the parts of a split add up to the whole.
static std::optional<Dim> join_extremes(const Term& x, const Term& y) {
  const Atom &a = *x.atoms[0], &b = *y.atoms[0];
  bool same_kind = a.kind == b.kind;
  if (x.coefficient != (same_kind ? -y.coefficient : y.coefficient)) return std::nullopt;
  bool aligned = a.difference == b.difference;
  if (!aligned && !(a.difference == Dim(-1) * b.difference)) return std::nullopt;
  const Dim& beside = aligned ? b.a : b.b;  // the operand of b that corresponds to a.a
  return Dim(x.coefficient) * (same_kind ? a.a - beside : a.b + beside);
}

static bool join_extremes(std::vector<Term>& terms) {
  constexpr auto kMost = 8;  // every pair is tried, and longer sums hardly ever simplify
  if (std::count_if(terms.begin(), terms.end(), is_short_extreme) > kMost) return false;
  for (size_t i = 0; i < terms.size(); i++)
    for (size_t j = i + 1; j < terms.size() && is_short_extreme(terms[i]); j++) {
      auto joined = is_short_extreme(terms[j]) ? join_extremes(terms[i], terms[j]) : std::nullopt;
      if (!joined) continue;
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(j));
      terms.erase(terms.begin() + static_cast<ptrdiff_t>(i));
      std::vector<Term> more = terms_of(*joined);
      terms.insert(terms.end(), more.begin(), more.end());
      return true;
    }
  return false;
}

// A coefficient that is too large for one term is split over several terms with the same atoms; all but the last have
// the largest coefficient.
static void append_term(std::vector<Term>& terms, __int128 coefficient, std::vector<AtomPtr> atoms) {
  constexpr int64_t kLargest = kLimit - 1;
  if (atoms.empty()) coefficient = saturate(coefficient);
  while (!atoms.empty() && (coefficient > kLargest || coefficient < -kLargest)) {
    int64_t part = coefficient > 0 ? kLargest : -kLargest;
    terms.push_back({part, atoms});
    coefficient -= part;
  }
  if (coefficient != 0) terms.push_back({static_cast<int64_t>(coefficient), std::move(atoms)});
}

// The terms mostly come as a few sorted runs, because sums are joined. So this merges runs.
static void sort(std::vector<Term>& terms) {
  auto is_before = [](const Term& a, const Term& b) { return compare_atoms(a.atoms, b.atoms) < 0; };
  std::vector<size_t> ends;
  for (size_t i = 1; i <= terms.size(); i++)
    if (i == terms.size() || is_before(terms[i], terms[i - 1])) ends.push_back(i);
  auto at = [&](size_t index) { return terms.begin() + static_cast<ptrdiff_t>(index); };
  while (ends.size() > 1) {
    std::vector<size_t> longer;
    for (size_t i = 0; i < ends.size(); i += 2) {
      size_t begin = i ? ends[i - 1] : 0, end = ends[std::min(i + 1, ends.size() - 1)];
      std::inplace_merge(at(begin), at(ends[i]), at(end), is_before);
      longer.push_back(end);
    }
    ends = std::move(longer);
  }
}

Dim Dim::from(Polynomial polynomial) {
  auto& terms = polynomial.terms;
  sort(terms);
  std::vector<Term> merged;
  for (size_t first = 0, end = 0; first < terms.size(); first = end) {
    __int128 coefficient = 0;
    for (; end < terms.size() && compare_atoms(terms[first].atoms, terms[end].atoms) == 0; end++)
      coefficient += terms[end].coefficient;
    append_term(merged, coefficient, std::move(terms[first].atoms));
  }
  if (join_extremes(merged)) return from({std::move(merged)});
  if (merged.empty()) return Dim(0);
  if (merged.size() == 1 && merged[0].atoms.empty()) return Dim(merged[0].coefficient);
  Dim dim;
  size_t hash = hash_of(merged);
  int64_t parts = parts_of(merged);
  dim.terms_ = std::make_shared<const Polynomial>(Polynomial{std::move(merged), hash, parts});
  return dim;
}

static Dim from_atom(Atom atom) {
  for (Dim* dim : {&atom.a, &atom.b})
    if (dim->is_literal()) *dim = saturate(dim->literal());
  atom.hash = atom.kind == Atom::kSymbol ? std::hash<std::string>()(atom.name)
                                         : hash_mix(hash_mix(hash_mix(1, atom.kind), atom.a.hash()), atom.b.hash());
  if (atom.kind == Atom::kMax || atom.kind == Atom::kMin) atom.difference = atom.a - atom.b;
  return Dim::from({{Term{1, {std::make_shared<const Atom>(std::move(atom))}}}});
}

// The same for both orders of a and b.
static Dim of_two(Atom::Kind kind, const Dim& a, const Dim& b) {
  return Dim::compare(a, b) < 0 ? from_atom({kind, "", a, b}) : from_atom({kind, "", b, a});
}

Dim Dim::symbol(std::string_view name) {
  return from_atom({Atom::kSymbol, std::string(name), {}, {}});
}

const std::string* Dim::symbol_name() const {
  if (!terms_ || terms_->terms.size() != 1) return nullptr;
  const Term& term = terms_->terms[0];
  if (term.coefficient != 1 || term.atoms.size() != 1 || term.atoms[0]->kind != Atom::kSymbol) return nullptr;
  return &term.atoms[0]->name;
}

// ---- arithmetic ----

Dim sum(std::span<const Dim> dims) {
  std::vector<Term> terms;
  for (const Dim& dim : dims) {
    std::vector<Term> more = terms_of(dim);
    terms.insert(terms.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
  }
  return Dim::from({std::move(terms)});
}

Dim operator+(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(add(a.literal_, b.literal_));
  if (a.is(0) || b.is(0)) return a.is(0) ? b : a;
  return sum(std::array{a, b});
}

Dim operator-(const Dim& a, const Dim& b) {
  if (b.is(0) && a.terms_) return a;
  return a + Dim(-1) * b;
}

// min(1, n): 1 if the size n is not 0, else 0.
static bool is_presence_of(const Atom& atom, const Atom& symbol) {
  if (atom.kind != Atom::kMin) return false;
  for (const auto& [one, other] : {std::pair(&atom.a, &atom.b), {&atom.b, &atom.a}})
    if (const std::string* name = other->symbol_name(); one->is(1) && name && *name == symbol.name) return true;
  return false;
}

// n * min(1, n) = n: a symbol is never negative.
static void drop_presence(std::vector<AtomPtr>& atoms) {
  std::vector<AtomPtr> symbols;
  for (const AtomPtr& atom : atoms)
    if (atom->kind == Atom::kSymbol) symbols.push_back(atom);
  std::erase_if(atoms, [&](const AtomPtr& atom) {
    return std::any_of(symbols.begin(), symbols.end(), [&](const AtomPtr& it) { return is_presence_of(*atom, *it); });
  });
}

static Term multiply(const Term& a, const Term& b) {
  Term product{multiply(a.coefficient, b.coefficient), {}};
  product.atoms.reserve(a.atoms.size() + b.atoms.size());
  auto is_before = [](const AtomPtr& x, const AtomPtr& y) { return compare(*x, *y) < 0; };
  std::ranges::merge(a.atoms, b.atoms, std::back_inserter(product.atoms), is_before);
  if (!a.atoms.empty() && !b.atoms.empty()) drop_presence(product.atoms);
  return product;
}

// Multiplied out, (a + b)(c + d)... grows exponentially with its length.
static bool is_too_long(const Dim& a, const Dim& b) {
  if (a.is_literal() || b.is_literal()) return false;
  auto terms = [](const Dim& dim) { return static_cast<int64_t>(dim.polynomial()->terms.size()); };
  return add(multiply(terms(a), b.parts()), multiply(terms(b), a.parts())) > Dim::kMaxParts;
}

// Multiplied out, (n - 2^21)^3 has the term 2^63, which no coefficient holds.
static bool has_large_terms(const std::vector<Term>& a, const std::vector<Term>& b) {
  auto largest = [](const std::vector<Term>& terms) {
    int64_t coefficient = 0;
    for (const Term& term : terms) coefficient = std::max(coefficient, std::abs(term.coefficient));
    return __int128{coefficient};
  };
  auto alike = static_cast<int64_t>(std::min(a.size(), b.size()));  // terms that may become one
  return largest(a) * largest(b) > kLimit / std::max<int64_t>(alike, 1);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.terms_ && !b.terms_) return Dim(multiply(a.literal_, b.literal_));
  if (a.is(1)) return b;  // most products begin so
  if (b.is(1)) return a;
  if (is_too_long(a, b)) return of_two(Atom::kProduct, a, b);
  std::vector<Term> left = terms_of(a), right = terms_of(b), product;
  if (has_large_terms(left, right)) return of_two(Atom::kProduct, a, b);
  for (const Term& x : left)
    for (const Term& y : right) product.push_back(multiply(x, y));
  return Dim::from({std::move(product)});
}

// x / y as monomials, if y divides x.
static std::optional<Term> divide(const Term& x, const Term& y) {
  if (x.coefficient % y.coefficient) return std::nullopt;
  Term quotient{x.coefficient / y.coefficient, {}};
  size_t next = 0;
  for (const AtomPtr& atom : x.atoms) {
    if (next < y.atoms.size() && compare(*atom, *y.atoms[next]) == 0)
      next++;
    else
      quotient.atoms.push_back(atom);
  }
  if (next != y.atoms.size()) return std::nullopt;
  return quotient;
}

static std::optional<Dim> divided_by_number(const Dim& a, int64_t b) {
  std::vector<Term> quotient = terms_of(a);
  for (Term& term : quotient) {
    if (term.coefficient % b) return std::nullopt;
    term.coefficient /= b;
  }
  return Dim::from({std::move(quotient)});
}

std::optional<Dim> exact_div(const Dim& a, const Dim& b) {
  if (b.is(0)) return std::nullopt;
  if (b.is_literal()) return divided_by_number(a, b.literal());
  std::vector<Term> divisor = terms_of(b);
  Dim rest = a, quotient = 0;
  for (int steps = 0; !rest.is(0); steps++) {
    if (steps == 64) return std::nullopt;  // saturated coefficients never cancel
    auto step = divide(terms_of(rest).front(), divisor.front());
    if (!step) return std::nullopt;
    Dim factor = Dim::from({{*step}});
    quotient = quotient + factor;
    rest = rest - factor * b;
  }
  return quotient;
}

// The part of `a` that b divides exactly: the terms whose coefficient b divides, and the constant without its
// remainder, which is not negative. So a size has one form: (n - 1) / 2 + 1 is (n + 1) / 2.
static Dim whole_part(const Dim& a, int64_t b) {
  std::vector<Term> whole;
  for (const Term& term : a.polynomial()->terms)
    if (term.coefficient % b == 0 || term.atoms.empty())
      whole.push_back({divide_down(term.coefficient, b), term.atoms});
  return Dim::from({std::move(whole)});
}

static Dim extreme(Atom::Kind kind, const Dim& a, const Dim& b);

// What the absolute values of the dim and of all its parts do not exceed, if no symbol exceeds the largest size; 2^62
// if one of them may saturate.
static int64_t bound(const Dim& dim) {
  if (dim.is_literal()) return std::abs(saturate(dim.literal()));
  int64_t all = 0;
  for (const Term& term : dim.polynomial()->terms) {
    int64_t product = std::abs(term.coefficient);
    for (const AtomPtr& atom : term.atoms) {
      int64_t a = bound(atom->a), b = bound(atom->b);
      bool is_product = atom->kind == Atom::kProduct;
      int64_t factor = atom->kind == Atom::kSymbol ? kLargestSize : is_product ? multiply(a, b) : std::max(a, b);
      product = multiply(product, factor);
    }
    all = add(all, product);
  }
  return all;
}

static bool may_saturate(const Dim& dim) {
  return bound(dim) == kLimit;
}

// floor((k max(l, x) + c) / b) = max(floor((k l + c) / b), floor((k x + c) / b)), and the min of the two for k < 0.
// Only where l, k and c are numbers: else there would be two quotients for one; not through a nest of extremes; and not
// where x may saturate: min(10, x) is known there, and x / 2 is not.
// So the size of a convolution after a transposed one is that before both: max(0, n) for (max(0, 2 n - 1) + 1) / 2.
static std::optional<Dim> quotient_of_extreme(const Dim& a, int64_t b) {
  const std::vector<Term>& terms = a.polynomial()->terms;
  const Term& term = terms[0];
  bool is_alone = terms.size() == 1 || (terms.size() == 2 && terms[1].atoms.empty());
  if (!is_alone || !is_extreme(term)) return std::nullopt;
  const Atom& atom = *term.atoms[0];
  if (!atom.a.is_literal() && !atom.b.is_literal()) return std::nullopt;
  auto in_place = [&](const Dim& operand) { return a - Dim::from({{term}}) + Dim(term.coefficient) * operand; };
  Dim x = in_place(atom.a), y = in_place(atom.b);
  for (const Dim* dim : {&x, &y}) {
    bool is_nested = !dim->is_literal() && std::ranges::any_of(dim->polynomial()->terms, is_extreme);
    if (is_nested || may_saturate(*dim)) return std::nullopt;
  }
  bool is_max = (atom.kind == Atom::kMax) == (term.coefficient > 0);
  return extreme(is_max ? Atom::kMax : Atom::kMin, floor_div(x, b), floor_div(y, b));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_literal() && b.is_literal() && !b.is(0)) return Dim(divide_down(saturate(a.literal_), b.literal_));
  if (auto exact = exact_div(a, b)) return *exact;
  if (!a.is_literal() && b.is_literal() && b.literal() > 1) {
    if (Dim whole = whole_part(a, b.literal()); !whole.is(0)) return whole + floor_div(a - whole * b, b);
    if (auto quotient = quotient_of_extreme(a, b.literal())) return *std::move(quotient);
  }
  return from_atom({Atom::kFloorDiv, "", a, b});
}

// max(c, max(x, d) + k) -> max(x + k, max(c, d + k)) for numbers c, d and k, and so for min. So slices of slices have
// the size of one slice.
static std::optional<Dim> extreme_of_extreme(Atom::Kind kind, const Dim& number, const Dim& other) {
  const Polynomial* sum = other.polynomial();
  if (!number.is_literal() || !sum || sum->terms.size() > 2) return std::nullopt;
  Dim shift = 0;
  const Atom* inner = nullptr;
  for (const Term& term : sum->terms) {
    if (term.atoms.empty()) shift = term.coefficient;
    if (term.atoms.size() == 1 && term.coefficient == 1 && term.atoms[0]->kind == kind) inner = term.atoms[0].get();
  }
  if (!inner || (sum->terms.size() == 2 && shift.is(0))) return std::nullopt;
  if (!inner->a.is_literal() && !inner->b.is_literal()) return std::nullopt;
  const auto& [limit, x] = inner->a.is_literal() ? std::tie(inner->a, inner->b) : std::tie(inner->b, inner->a);
  return extreme(kind, x + shift, extreme(kind, number, limit + shift));
}

static Dim extreme(Atom::Kind kind, const Dim& a, const Dim& b) {
  bool keep_larger = kind == Atom::kMax;
  Dim difference = a - b;
  if (difference.is_literal()) return (difference.literal() > 0) == keep_larger ? a : b;
  if (auto one = extreme_of_extreme(kind, a, b)) return *one;
  if (auto one = extreme_of_extreme(kind, b, a)) return *one;
  return of_two(kind, a, b);
}

Dim max(const Dim& a, const Dim& b) {
  return extreme(Atom::kMax, a, b);
}
Dim min(const Dim& a, const Dim& b) {
  return extreme(Atom::kMin, a, b);
}

// ---- substitution ----

Dim combined(Atom::Kind kind, const Dim& a, const Dim& b) {
  switch (kind) {
    case Atom::kFloorDiv: return floor_div(a, b);
    case Atom::kMax: return max(a, b);
    case Atom::kMin: return min(a, b);
    default: return a * b;
  }
}

// The dim with each atom replaced by `replacement(atom)`; nullopt keeps the atom. Terms without a replacement stay as
// they are: of a long sum they are most.
template <class Replacement>
static Dim over_atoms(const Dim& dim, Replacement replacement) {
  if (dim.is_literal()) return dim;
  Polynomial kept;
  std::vector<Dim> products;
  for (const Term& term : dim.polynomial()->terms) {
    Term same{term.coefficient, {}};
    std::vector<Dim> replaced;
    for (const AtomPtr& atom : term.atoms) {
      if (auto made = replacement(*atom))
        replaced.push_back(*std::move(made));
      else
        same.atoms.push_back(atom);
    }
    if (replaced.empty()) {
      kept.terms.push_back(std::move(same));
      continue;
    }
    Dim product = Dim::from({{std::move(same)}});
    for (const Dim& factor : replaced) product *= factor;
    products.push_back(std::move(product));
  }
  if (products.empty()) return dim;
  products.push_back(Dim::from(std::move(kept)));
  return sum(products);
}

Dim substitute(const Dim& dim, const std::function<std::optional<Dim>(std::string_view)>& replacement) {
  return over_atoms(dim, [&](const Atom& atom) -> std::optional<Dim> {
    if (atom.kind == Atom::kSymbol) return replacement(atom.name);
    Dim a = substitute(atom.a, replacement), b = substitute(atom.b, replacement);
    if (a == atom.a && b == atom.b) return std::nullopt;
    return combined(atom.kind, a, b);
  });
}

Dim rewritten(const Dim& dim, const AtomRewrite& replacement) {
  return over_atoms(dim, [&](const Atom& atom) -> std::optional<Dim> {
    if (atom.kind == Atom::kSymbol) return std::nullopt;
    Dim a = rewritten(atom.a, replacement), b = rewritten(atom.b, replacement);
    if (auto made = replacement(atom.kind, a, b)) return made;
    if (a == atom.a && b == atom.b) return std::nullopt;
    return combined(atom.kind, a, b);
  });
}

void visit_symbols(const Dim& dim, VisitSymbol visit) {
  if (dim.is_literal()) return;
  for (const Term& term : dim.polynomial()->terms)
    for (const AtomPtr& atom : term.atoms) {
      if (atom->kind == Atom::kSymbol) {
        visit(atom->name);
        continue;
      }
      visit_symbols(atom->a, visit);
      visit_symbols(atom->b, visit);
    }
}

bool names(const Dim& dim, std::string_view symbol) {
  bool found = false;
  visit_symbols(dim, [&](const std::string& name) { found |= name == symbol; });
  return found;
}

// ---- conditions as sizes ----

Dim is_less(const Dim& a, const Dim& b) {
  return min(Dim(1), max(Dim(0), b - a));
}

Dim is_equal(const Dim& a, const Dim& b) {
  return negated(max(is_less(a, b), is_less(b, a)));  // in this form its range is [0, 1]
}

}  // namespace rlx
