// SPDX-License-Identifier: Apache-2.0
// The value of a dim, given the sizes of its symbols.
#include "base/dim_memo.h"

#include <algorithm>

#include "base/dim_parts.h"
#include "base/shortened.h"

namespace rlx {

using saturating::divide_down, saturating::kLimit, saturating::saturate;

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
  if (b == 0) {
    std::string quotient = shortened(floor_div(atom.a, atom.b).text());
    return Status(Code::kShape, "division by zero in the size " + quotient)
        .with("value", quotient)
        .with("expected", "a divisor other than 0")
        .with("got", "0");
  }
  if (is_saturated(a)) return too_large(atom.a);
  return divide_down(a, b);
}

static Result<int64_t> evaluate(const Dim& dim, const SymbolLookup& sizes, KnownValues* known);

static Result<int64_t> evaluate(const Atom& atom, const SymbolLookup& sizes, KnownValues* known) {
  if (atom.kind == Atom::kSymbol) {
    if (auto size = sizes(atom.name)) return *size;
    return Status(Code::kShape, "the size of '" + atom.name + "' is not known").with("value", atom.name);
  }
  int64_t a = RLX_TRY(evaluate(atom.a, sizes, known)), b = RLX_TRY(evaluate(atom.b, sizes, known));
  if (atom.kind == Atom::kMax) return std::max(a, b);
  if (atom.kind == Atom::kMin) return std::min(a, b);
  if (atom.kind == Atom::kProduct) return multiply_exactly(atom, a, b);
  return divide_down(atom, a, b);
}

static Result<int64_t> evaluate(const AtomPtr& atom, const SymbolLookup& sizes, KnownValues* known) {
  if (!known || atom->kind == Atom::kSymbol) return evaluate(*atom, sizes, known);
  if (auto found = known->find(atom); found != known->end()) return found->second;
  Result<int64_t> value = evaluate(*atom, sizes, known);
  return known->emplace(atom, std::move(value)).first->second;
}

// Terms may be far larger than their sum, for example those of (n - k)^9. So only the sum saturates.
static Result<int64_t> evaluate(const Dim& dim, const SymbolLookup& sizes, KnownValues* known) {
  if (dim.is_literal()) return dim.literal();
  __int128 sum = 0;
  bool overflows = false;
  for (const Term& term : dim.polynomial()->terms) {
    __int128 product = term.coefficient;
    for (const AtomPtr& atom : term.atoms)
      overflows |= __builtin_mul_overflow(product, __int128{RLX_TRY(evaluate(atom, sizes, known))}, &product);
    overflows |= __builtin_add_overflow(sum, product, &sum);
  }
  if (overflows) return too_large(dim);
  return saturate(sum);
}

Result<int64_t> evaluate(const Dim& dim, const SymbolLookup& sizes) {
  return evaluate(dim, sizes, nullptr);
}

Result<int64_t> evaluate(const Dim& dim, const SymbolLookup& sizes, KnownValues& known) {
  return evaluate(dim, sizes, &known);
}

}  // namespace rlx
