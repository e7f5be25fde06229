// SPDX-License-Identifier: Apache-2.0
// From the trends and signs of the parts of a dim to its own.
#include "base/dim_trend.h"

#include <algorithm>

namespace rlx {

static bool names(const Atom& atom, std::string_view symbol) {
  return atom.kind == Atom::kSymbol ? atom.name == symbol : names(atom.a, symbol) || names(atom.b, symbol);
}

bool is_linear_in(const Dim& dim, std::string_view symbol) {
  if (dim.is_literal()) return true;
  return std::ranges::all_of(dim.polynomial()->terms, [&](const Term& term) {
    auto moving = std::ranges::count_if(term.atoms, [&](const AtomPtr& atom) { return names(*atom, symbol); });
    auto bare = std::ranges::count_if(
        term.atoms, [&](const AtomPtr& atom) { return atom->kind == Atom::kSymbol && atom->name == symbol; });
    return moving == bare && moving <= 1;
  });
}

namespace {

struct Part {
  Trend trend;
  Interval range;
};

Trend flipped(Trend trend) {
  return trend == Trend::kRises ? Trend::kFalls : trend == Trend::kFalls ? Trend::kRises : trend;
}

// Of a sum, a minimum or a maximum.
Trend joined(Trend a, Trend b) {
  if (a == Trend::kSteady || a == b) return b;
  return b == Trend::kSteady ? a : Trend::kUnclear;
}

Trend scaled(Trend trend, Interval factor) {
  if (trend == Trend::kSteady || factor.lo >= 0) return trend;
  return factor.hi <= 0 ? flipped(trend) : Trend::kUnclear;
}

Trend of_product(const Part& a, const Part& b) {
  if (a.trend == Trend::kSteady) return scaled(b.trend, a.range);
  if (b.trend == Trend::kSteady) return scaled(a.trend, b.range);
  return a.range.lo >= 0 && b.range.lo >= 0 ? joined(a.trend, b.trend) : Trend::kUnclear;
}

// a / b rises with a, and falls with b where a is not negative.
Trend of_quotient(const Part& a, const Part& b) {
  if (b.range.lo <= 0) return Trend::kUnclear;
  return joined(a.trend, scaled(flipped(b.trend), a.range));
}

class Trends {
 public:
  Trends(std::string_view symbol, const RangeLookup& ranges) : symbol_(symbol), ranges_(ranges) {}

  Trend of(const Dim& dim) const {
    Trend sum = Trend::kSteady;
    if (!dim.is_literal())
      for (const Term& term : dim.polynomial()->terms) sum = joined(sum, of(term));
    return sum;
  }

 private:
  Part part(const Dim& dim) const { return {of(dim), range_of(dim, ranges_)}; }

  Trend of(const Term& term) const {
    Term steady{term.coefficient, {}};
    std::vector<Part> moving;
    for (const AtomPtr& atom : term.atoms) {
      if (!names(*atom, symbol_))
        steady.atoms.push_back(atom);
      else
        moving.push_back({of(*atom), range_of(Dim::from({{Term{1, {atom}}}}), ranges_)});
    }
    if (moving.empty()) return Trend::kSteady;
    Trend product = moving[0].trend;
    for (size_t i = 1; i < moving.size(); i++) {
      bool is_negative = moving[0].range.lo < 0 || moving[i].range.lo < 0;
      product = is_negative ? Trend::kUnclear : joined(product, moving[i].trend);
    }
    return scaled(product, range_of(Dim::from({{std::move(steady)}}), ranges_));
  }

  Trend of(const Atom& atom) const {
    switch (atom.kind) {
      case Atom::kSymbol: return atom.name == symbol_ ? Trend::kRises : Trend::kSteady;
      case Atom::kMax:
      case Atom::kMin: return joined(of(atom.a), of(atom.b));
      case Atom::kProduct: return of_product(part(atom.a), part(atom.b));
      case Atom::kFloorDiv: return of_quotient(part(atom.a), part(atom.b));
    }
    return Trend::kUnclear;
  }

  std::string_view symbol_;
  const RangeLookup& ranges_;
};

}  // namespace

Trend trend_of(const Dim& dim, std::string_view symbol, const RangeLookup& ranges) {
  return Trends(symbol, ranges).of(dim);
}

}  // namespace rlx
