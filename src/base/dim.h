// SPDX-License-Identifier: Apache-2.0
// Dim: a size, as a number or an integer expression over named symbols (semantics.md S1). The form is canonical: a
// polynomial over atoms. An atom is a symbol, or opaque: a floor division, a max or min, or a product that is too long
// or too large to multiply out. Dims that compare equal are equal at all sizes. Two dims without opaque atoms that are
// equal at all sizes compare equal; with opaque atoms, == may miss it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"

namespace rlx {

struct Polynomial;

class Dim {
 public:
  Dim(int64_t literal = 0) : literal_(literal) {}  // NOLINT: a number is a dim
  static Dim symbol(std::string_view name);

  bool is_literal() const { return !terms_; }
  bool is(int64_t value) const { return !terms_ && literal_ == value; }
  int64_t literal() const { return literal_; }  // of a literal
  const std::string* symbol_name() const;       // of a lone symbol, else null

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  friend Dim floor_div(const Dim& a, const Dim& b);  // a / 0 stays a term; evaluating it is an error
  friend Dim max(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  Dim& operator*=(const Dim& b) { return *this = *this * b; }
  Dim& operator+=(const Dim& b) { return *this = *this + b; }

  bool operator==(const Dim& other) const {  // most dims are literals
    return is_literal() && other.is_literal() ? literal_ == other.literal_ : has_terms_of(other);
  }
  static int compare(const Dim& a, const Dim& b);  // a total order, for canonical forms and maps
  size_t hash() const;
  std::string text() const;  // "past + seq", "4*heads"; parse_dim reads it back
  // The number of symbols and operations in it, repetitions included. A size in a graph has at most kMaxParts of them,
  // so a walk over a size takes little time and little stack.
  int64_t parts() const;
  static constexpr int64_t kMaxParts = 1000;

  // a / b where b divides a for every value of the symbols (polynomial division), else nullopt.
  friend std::optional<Dim> exact_div(const Dim& a, const Dim& b);

  const Polynomial* polynomial() const { return terms_.get(); }  // null for a literal
  static Dim from(Polynomial polynomial);                        // canonical form of any polynomial

 private:
  bool has_terms_of(const Dim& other) const;

  int64_t literal_ = 0;
  std::shared_ptr<const Polynomial> terms_;
};

// Like exact_div, but equal dims give 1, even if both are 0: n / n is 1 too, and a run may set n to 0.
inline std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
  return a == b ? Dim(1) : exact_div(a, b);
}

// A factor of a term: a symbol; a floor(a/b), max(a,b) or min(a,b) that does not simplify; or an a*b that is too long
// or too large to multiply out.
struct Atom {
  enum Kind : uint8_t { kSymbol, kFloorDiv, kMax, kMin, kProduct } kind;
  std::string name;  // of a symbol
  Dim a, b;          // operands of the others
  size_t hash = 0;   // set at construction, as for a polynomial
  Dim difference;    // a - b, of a max or min: to subtract again at every sum would take exponential time
};
using AtomPtr = std::shared_ptr<const Atom>;

struct Term {
  int64_t coefficient;
  std::vector<AtomPtr> atoms;  // sorted; an atom to the power n stands n times
};

struct Polynomial {
  std::vector<Term> terms;  // sorted, highest degree first; coefficients are not 0
  size_t hash = 0;
  int64_t parts = 0;
};

// Costs less than adding one dim after the other.
Dim sum(std::span<const Dim> dims);

Status check_parts(std::span<const Dim> dims);  // RLX_E_UNSUPPORTED for a size of more than kMaxParts

// A condition as a size: 1 where it holds, else 0.
Dim is_less(const Dim& a, const Dim& b);
Dim is_equal(const Dim& a, const Dim& b);
inline Dim negated(const Dim& truth) {
  return Dim(1) - truth;
}

// Sizes of symbols in a run, or nullopt for one that is not known.
using SymbolLookup = std::function<std::optional<int64_t>(std::string_view)>;
// RLX_E_SHAPE: a size is not known, or a division by 0. RLX_E_RANGE: a term is too large. A sum that is too large
// saturates.
Result<int64_t> evaluate(const Dim& dim, const SymbolLookup& sizes);

// The values that a dim can take, given the ranges of its symbols. `hi` is kUnbounded if there is no maximum.
struct Interval {
  static constexpr int64_t kUnbounded = int64_t{1} << 62;
  int64_t lo = 0, hi = kUnbounded;
  bool operator==(const Interval&) const = default;
};
// The maximum of a symbol without a declared one. It is checked when sizes are bound, so facts about integers may rely
// on it.
inline constexpr int64_t kLargestSymbol = (int64_t{1} << 30) - 1;
// The largest number that may stand as a size in a graph.
inline constexpr int64_t kLargestSize = int64_t{1} << 48;

// Of what both allow; lo > hi if that is nothing.
inline Interval intersection(Interval a, Interval b) {
  return {a.lo > b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
}

using RangeLookup = std::function<Interval(std::string_view)>;
Interval range_of(const Dim& dim, const RangeLookup& ranges);

// Gives the replacement of an atom that is not a symbol, or nullopt to keep it. Inner atoms come before those that
// contain them.
using AtomRewrite = std::function<std::optional<Dim>(Atom::Kind kind, const Dim& a, const Dim& b)>;
Dim rewritten(const Dim& dim, const AtomRewrite& replacement);
Dim substitute(const Dim& dim, const std::function<std::optional<Dim>(std::string_view)>& replacement);
using VisitSymbol = FunctionRef<void(const std::string& symbol)>;
void visit_symbols(const Dim& dim, VisitSymbol visit);
bool names(const Dim& dim, std::string_view symbol);  // whether the symbol is one of them

// "+ - *", "/" rounding down, "min(a,b)", "max(a,b)", parentheses, integers, symbols. A symbol is a C identifier that
// may also hold dots, or any text in single quotes. Errors name the column.
Result<Dim> parse_dim(std::string_view text);

// ---- axes and broadcasting (semantics.md S3, S5) ----

// The axis as a number in [0, rank); an axis below 0 counts from the end. Else RLX_E_RANGE.
Result<int64_t> checked_axis(int64_t axis, size_t rank);

// RLX_E_SHAPE: "x needs rank 2 or more, not 1"; expected "0" says that `what` must be a scalar.
Status wrong_rank(std::string_view what, std::string_view expected, size_t got);

// The common size of two dims that must agree, where neither is a literal 1 and the two are not equal; or why they do
// not agree.
using AgreeFn = FunctionRef<Result<Dim>(const Dim& a, const Dim& b)>;
// NumPy's broadcasting: aligned right, a literal 1 stretches, all others agree.
Result<std::vector<Dim>> broadcast(std::span<const Dim> a, std::span<const Dim> b, AgreeFn agree);
// `from` stretched to `to`, which is not stretched itself.
Result<std::vector<Dim>> stretch(std::span<const Dim> from, std::span<const Dim> to, AgreeFn agree);

std::string text_of(const std::vector<Dim>& dims);  // "[batch,past + seq,64]"

}  // namespace rlx
