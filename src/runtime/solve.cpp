// SPDX-License-Identifier: Apache-2.0
// Solves one dim for one symbol at a time: linear dims by division. A monotone dim leaves a range of sizes, which those
// of other dims narrow; the least size that fits all dims is chosen last.
#include "runtime/solve.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/dim_trend.h"
#include "base/size_failure.h"

namespace rlx {

namespace {

// The only unknown symbol of a dim.
struct Lone {
  int64_t index = -1;  // -1: there is none, or there are several
  std::string_view name;
};

Lone only_unknown(const Dim& dim, const KnownSizes& known) {
  Lone lone;
  bool several = false;
  auto note = [&](const std::string& name) {
    uint32_t i = known.index_of(name);
    if (i == Plan::kNoSymbol || known.sizes[i] != kUnknownSize) return;
    several |= lone.index >= 0 && lone.index != i;
    lone = {i, name};
  };
  visit_symbols(dim, std::ref(note));
  return several ? Lone() : lone;
}

using At = FunctionRef<Result<int64_t>(int64_t symbol)>;  // the value of a dim for one size of its symbol

// s = (given - f(0)) / (f(1) - f(0)). Sizes that nobody has checked yet come up to 2^63 - 1.
int64_t solve_linear(At at, int64_t given) {
  auto zero = at(0), one = at(1);
  if (!zero.ok() || !one.ok() || *one == *zero) return kUnknownSize;
  __int128 solution = (__int128{given} - *zero) / (__int128{*one} - *zero);
  if (solution < 0 || solution > Interval::kUnbounded) return kUnknownSize;
  auto size = static_cast<int64_t>(solution);
  auto check = at(size);
  return check.ok() && *check == given ? size : kUnknownSize;
}

// The least size from which `is_reached` holds; one above the largest if there is none.
int64_t least_size(FunctionRef<bool(int64_t size)> is_reached) {
  int64_t lo = 0, hi = kLargestSymbol + 1;
  while (lo < hi) {
    int64_t middle = lo + (hi - lo) / 2;
    if (is_reached(middle))
      hi = middle;
    else
      lo = middle + 1;
  }
  return lo;
}

// The sizes at which a dim that rises, or falls, with its symbol is `given`; hi < lo if there are none.
Interval solve_monotone(At at, int64_t given, bool falls) {
  auto passes = [&](int64_t size, bool or_is) {
    if (size > kLargestSymbol) return true;
    auto there = at(size);
    if (!there.ok()) return there.status().code() != Code::kShape;  // too large; or a division by 0, at the least sizes
    return (or_is && *there == given) || (falls ? *there < given : *there > given);
  };
  auto reaches = [&](int64_t size) { return passes(size, true); };
  auto exceeds = [&](int64_t size) { return passes(size, false); };
  return {least_size(reaches), least_size(exceeds) - 1};
}

// The given dims that have unknown symbols. A dim is tried again only when one of its symbols has been solved, so long
// chains such as a + b, b + c, ... take linear time in any order.
class Equations {
 public:
  Equations(std::span<const GivenDims> given, IndexOf index_of, RangeOf legal, std::span<int64_t> sizes)
      : index_of_(index_of), legal_(legal), sizes_(sizes) {
    for (const GivenDims& input : given)
      for (size_t i = 0; i < input.dims.size(); i++) add(input.type->dims[i], input.dims[i]);
  }

  // Finds all sizes of which the dims leave only one.
  void solve() {
    while (!waiting_.empty()) examine(waiting_.extract(waiting_.begin()).value());
  }
  void set(uint32_t symbol, int64_t size) {
    sizes_[symbol] = size;
    if (auto readers = readers_.find(symbol); readers != readers_.end())
      waiting_.insert(readers->second.begin(), readers->second.end());
  }
  // Chooses a size where several are left.
  void choose() {
    for (solve(); !undecided_.empty(); solve()) {
      uint32_t index = undecided_.extract(undecided_.begin()).value();
      Lone lone = lone_of(index);
      if (lone.index < 0) continue;
      auto symbol = static_cast<uint32_t>(lone.index);
      if (!tried_.insert(symbol).second) continue;
      if (int64_t size = chosen(symbol); size != kUnknownSize) set(symbol, size);
    }
  }

 private:
  struct Equation {
    const Dim* dim;
    int64_t given;
    bool is_monotone = false;  // in its only unknown symbol
  };

  void add(const Dim& dim, int64_t given) {
    if (dim.is_literal()) return;
    auto index = static_cast<uint32_t>(equations_.size());
    bool is_open = false;
    auto note = [&](const std::string& name) {
      uint32_t symbol = index_of_(name);
      if (symbol == Plan::kNoSymbol || sizes_[symbol] != kUnknownSize) return;
      readers_[symbol].push_back(index);
      is_open = true;
    };
    visit_symbols(dim, std::ref(note));
    if (!is_open) return;
    equations_.push_back({&dim, given});
    waiting_.insert(index);
  }

  Lone lone_of(uint32_t index) const { return only_unknown(*equations_[index].dim, {index_of_, sizes_}); }
  Result<int64_t> value(const Dim& dim, uint32_t symbol, int64_t size) {
    sizes_[symbol] = size;
    KnownSizes known{index_of_, sizes_};
    auto value = evaluate(dim, std::cref(known));
    sizes_[symbol] = kUnknownSize;
    return value;
  }

  void examine(uint32_t index) {
    Lone lone = lone_of(index);
    if (lone.index < 0) return;
    Equation& it = equations_[index];
    auto symbol = static_cast<uint32_t>(lone.index);
    auto at = [&](int64_t size) { return value(*it.dim, symbol, size); };
    if (is_linear_in(*it.dim, lone.name))
      if (int64_t size = solve_linear(at, it.given); size != kUnknownSize) return set(symbol, size);
    undecided_.insert(index);
    Trend trend = trend_of_unknown(*it.dim, lone, at(0).ok() ? 0 : 1);
    it.is_monotone = trend == Trend::kRises || trend == Trend::kFalls;
    if (it.is_monotone) narrow(symbol, solve_monotone(at, it.given, trend == Trend::kFalls));
  }

  Trend trend_of_unknown(const Dim& dim, const Lone& lone, int64_t least) const {
    KnownSizes known{index_of_, sizes_};
    return trend_of(dim, lone.name, [&](std::string_view name) {
      auto size = known(name);
      return size ? Interval{*size, *size} : Interval{least, kLargestSymbol};
    });
  }

  // Ranges that have no size in common are of inputs that disagree, which a check will tell.
  void narrow(uint32_t symbol, Interval fits) {
    auto [found, is_new] = ranges_.emplace(symbol, fits);
    Interval both = intersection(found->second, fits);
    if (both.lo > both.hi) {
      if (is_new) ranges_.erase(found);
      return;
    }
    found->second = both;
    if (both.lo == both.hi) set(symbol, both.lo);
  }

  // The least size that fits all dims of which it is the only unknown symbol; legal ones come first.
  int64_t chosen(uint32_t symbol) {
    std::vector<const Equation*> equations;
    for (uint32_t reader : readers_.at(symbol))
      if (lone_of(reader).index >= 0) equations.push_back(&equations_[reader]);
    auto fits = [&](int64_t size) {
      return size != kUnknownSize && std::ranges::all_of(equations, [&](const Equation* it) {
               auto there = value(*it->dim, symbol, size);
               return there.ok() && *there == it->given;
             });
    };
    auto range = ranges_.find(symbol);
    if (range == ranges_.end()) return guessed(symbol, equations, fits);
    Interval both = intersection(legal_(symbol), range->second);
    if (both.lo > both.hi) both = range->second;
    int64_t found = first_of(both, fits);
    return found == kUnknownSize ? both.lo : found;  // a check will tell which dim does not fit
  }

  using Fits = FunctionRef<bool(int64_t size)>;
  static int64_t first_of(Interval range, Fits fits) {
    constexpr int64_t kTries = 1024;
    for (int64_t size = range.lo; size <= std::min(range.hi, range.lo + kTries); size++)
      if (fits(size)) return size;
    return kUnknownSize;
  }

  // Of dims that neither rise nor fall: tries them as if they did.
  int64_t guessed(uint32_t symbol, std::span<const Equation* const> equations, Fits fits) {
    bool any = false;
    for (const Equation* it : equations) {
      if (it->is_monotone) continue;
      any = true;
      auto at = [&](int64_t size) { return value(*it->dim, symbol, size); };
      auto zero = at(0), last = at(kLargestSymbol);
      bool falls = zero.ok() && last.ok() && *last < *zero;
      for (int64_t size : {solve_linear(at, it->given), solve_monotone(at, it->given, falls).lo})
        if (fits(size)) return size;
    }
    return any ? first_of(legal_(symbol), fits) : kUnknownSize;
  }

  IndexOf index_of_;
  RangeOf legal_;
  std::span<int64_t> sizes_;
  std::vector<Equation> equations_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> readers_;  // by symbol
  std::unordered_map<uint32_t, Interval> ranges_;                // by symbol: what monotone dims leave of it
  std::set<uint32_t> waiting_, undecided_;                       // those to try; the earliest comes first
  std::set<uint32_t> tried_;                                     // symbols for which a size was looked for
};

// Arithmetic of sizes ends at 2^62, so larger ones would all look alike.
Status check_countable(const GivenDims& input, size_t axis) {
  int64_t size = input.dims[axis];
  if (size < Interval::kUnbounded) return {};
  return Status(Code::kRange, format("'{}', axis {}: the size {} is above 2^62 - 1", input.name, axis, size))
      .with("value", input.name)
      .with("expected", format("at most {}", Interval::kUnbounded - 1))
      .with("got", std::to_string(size));
}

Status check_given(const GivenDims& input, size_t axis, int64_t expected) {
  RLX_TRY(check_countable(input, axis));
  if (expected == input.dims[axis]) return {};
  const Dim& dim = input.type->dims[axis];
  Status wrong = Status(Code::kShape, format("'{}', axis {}: {} is {}, not {}", input.name, axis,
                                             dim.is_literal() ? "the size" : dim.text(), expected, input.dims[axis]))
                     .with("value", input.name)
                     .with("expected", std::to_string(expected))
                     .with("got", std::to_string(input.dims[axis]));
  return dim.symbol_name() ? std::move(wrong).with(kUnequalSizes, "1") : wrong;
}

}  // namespace

void solve_sizes(std::span<const GivenDims> given, std::span<const int64_t> requested, IndexOf index_of, RangeOf legal,
                 std::span<int64_t> sizes) {
  std::fill(sizes.begin(), sizes.end(), kUnknownSize);
  for (const GivenDims& input : given)
    for (size_t i = 0; i < input.dims.size(); i++)
      if (const std::string* name = input.type->dims[i].symbol_name())
        if (uint32_t symbol = index_of(*name); symbol != Plan::kNoSymbol && sizes[symbol] == kUnknownSize)
          sizes[symbol] = input.dims[i];
  Equations equations(given, index_of, legal, sizes);
  equations.solve();
  for (uint32_t i = 0; i < sizes.size(); i++)
    if (sizes[i] == kUnknownSize && requested[i] != kUnknownSize) equations.set(i, requested[i]);
  equations.choose();
}

Status check_given(const GivenDims& input, const SymbolLookup& sizes) {
  for (size_t i = 0; i < input.dims.size(); i++)
    RLX_TRY(check_given(input, i, RLX_TRY(evaluate(input.type->dims[i], sizes))));
  return {};
}

// Reports a dim whose last unknown symbol has no solution.
static Status check_solved(std::span<const GivenDims> given, const KnownSizes& known) {
  for (const GivenDims& input : given)
    for (size_t i = 0; i < input.dims.size(); i++) {
      RLX_TRY(check_countable(input, i));
      const Dim& dim = input.type->dims[i];
      if (only_unknown(dim, known).index < 0) continue;
      std::set<std::string> facts;
      auto note = [&](const std::string& name) {
        if (auto size = known(name)) facts.insert(format("{} is {}", name, *size));
      };
      visit_symbols(dim, std::ref(note));
      std::string where;
      for (const std::string& fact : facts) where += (where.empty() ? " where " : " and ") + fact;
      return Status(Code::kShape, format("'{}', axis {}: no size is found that makes {} equal to {}{}", input.name, i,
                                         dim.text(), input.dims[i], where))
          .with("value", input.name)
          .with("expected", dim.text())
          .with("got", std::to_string(input.dims[i]));
    }
  return {};
}

// The unknown symbols of a dim: "n and m".
static std::string unknown_of(const Dim& dim, const KnownSizes& known) {
  std::set<std::string> names;
  auto note = [&](const std::string& name) {
    if (!known(name)) names.insert(name);
  };
  visit_symbols(dim, std::ref(note));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text;
}

Status check_determined(std::span<const GivenDims> given, const KnownSizes& known) {
  RLX_TRY(check_solved(given, known));
  for (const GivenDims& input : given)
    for (size_t i = 0; i < input.dims.size(); i++) {
      const Dim& dim = input.type->dims[i];
      std::string open = unknown_of(dim, known);
      if (!open.empty())
        return Status(Code::kShape, format("'{}', axis {}: {} = {} does not decide {}: another input or call must",
                                           input.name, i, dim.text(), input.dims[i], open))
            .with("value", input.name)
            .with("expected", dim.text())
            .with("got", std::to_string(input.dims[i]));
    }
  return {};
}

// Reports a dim whose symbols have other sizes elsewhere.
static Status check_agreement(std::span<const GivenDims> given, const SymbolLookup& lookup) {
  for (const GivenDims& input : given)
    for (size_t i = 0; i < input.dims.size(); i++)
      if (auto size = evaluate(input.type->dims[i], lookup); size.ok()) RLX_TRY(check_given(input, i, *size));
  return {};
}

Result<std::vector<std::optional<int64_t>>> solve_symbols(std::span<const std::string_view> symbols,
                                                          std::span<const GivenDims> given,
                                                          std::span<const Interval> ranges) {
  std::unordered_map<std::string_view, uint32_t> indices;
  for (uint32_t i = 0; i < symbols.size(); i++) indices.emplace(symbols[i], i);
  auto symbol = [&](std::string_view name) {
    auto found = indices.find(name);
    return found == indices.end() ? Plan::kNoSymbol : found->second;
  };
  IndexOf index_of(symbol);
  std::vector<int64_t> sizes(symbols.size(), kUnknownSize);
  auto range = [&](uint32_t i) { return ranges.empty() ? Interval() : ranges[i]; };
  Equations(given, index_of, range, sizes).choose();
  KnownSizes known{index_of, sizes};
  RLX_TRY(check_solved(given, known));
  RLX_TRY(check_agreement(given, std::cref(known)));
  std::vector<std::optional<int64_t>> found;
  for (int64_t size : sizes) found.push_back(size == kUnknownSize ? std::nullopt : std::optional(size));
  return found;
}

}  // namespace rlx
