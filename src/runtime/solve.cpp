// SPDX-License-Identifier: Apache-2.0
// Solves one dim for one symbol at a time: linear dims by division, monotone ones by bisection.
#include "runtime/solve.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/size_failure.h"

namespace rlx {

namespace {

constexpr int64_t kUnknown = kUnknownSize;

// The only unknown symbol of a dim, or -1.
int64_t only_unknown(const Dim& dim, const KnownSizes& known) {
  int64_t lone = -1;
  bool several = false;
  auto note = [&](const std::string& name) {
    uint32_t i = known.index_of(name);
    if (i == Plan::kNoSymbol || known.sizes[i] != kUnknown) return;
    several |= lone >= 0 && lone != i;
    lone = i;
  };
  visit_symbols(dim, std::ref(note));
  return several ? -1 : lone;
}

enum class Solve : uint8_t { kLinear, kMonotone };

using At = FunctionRef<Result<int64_t>(int64_t symbol)>;  // the value of a dim for one size of its symbol

// s = (given - f(0)) / (f(1) - f(0))
int64_t solve_linear(At at, int64_t given) {
  auto zero = at(0), one = at(1);
  if (!zero.ok() || !one.ok() || *one == *zero) return kUnknown;
  return (given - *zero) / (*one - *zero);
}

// The least size at which a dim that grows, or falls, with its symbol reaches `given`. For a dim such as n / 2 several
// sizes agree.
int64_t solve_monotone(At at, int64_t given) {
  auto zero = at(0), last = at(kLargestSymbol);
  bool falls = zero.ok() && last.ok() && *last < *zero;
  int64_t lo = 0, hi = kLargestSymbol;
  while (lo < hi) {
    int64_t middle = lo + (hi - lo) / 2;
    auto there = at(middle);  // an error: terms that are too large
    if (there.ok() && (falls ? *there > given : *there < given))
      lo = middle + 1;
    else
      hi = middle;
  }
  return lo;
}

// Solves a dim with one unknown symbol for that symbol. Returns its index, or -1.
int64_t solve(Solve how, const Dim& dim, int64_t given, IndexOf index_of, std::span<int64_t> sizes) {
  KnownSizes known{index_of, sizes};
  int64_t lone = only_unknown(dim, known);
  if (lone < 0) return -1;
  int64_t& size = sizes[static_cast<size_t>(lone)];
  auto at = [&](int64_t value) {
    size = value;
    return evaluate(dim, std::cref(known));
  };
  int64_t solution = how == Solve::kLinear ? solve_linear(at, given) : solve_monotone(at, given);
  if (solution >= 0) {
    auto check = at(solution);
    if (check.ok() && *check == given) return lone;
  }
  size = kUnknown;
  return -1;
}

// The given dims that have unknown symbols. A dim is tried again only when one of its symbols has been solved, so long
// chains such as a + b, b + c, ... take linear time in any order.
class Equations {
 public:
  Equations(std::span<const GivenDims> given, IndexOf index_of, std::span<int64_t> sizes)
      : index_of_(index_of), sizes_(sizes) {
    for (const GivenDims& input : given)
      for (size_t i = 0; i < input.dims.size(); i++) add(input.type->dims[i], input.dims[i]);
  }

  // A monotone dim is solved only where no linear one is left: it may have other solutions than the one that is found.
  void solve_all() {
    while (!linear_.empty() || !monotone_.empty()) {
      Solve how = linear_.empty() ? Solve::kMonotone : Solve::kLinear;
      std::set<uint32_t>& waiting = how == Solve::kLinear ? linear_ : monotone_;
      auto [dim, given] = equations_[waiting.extract(waiting.begin()).value()];
      int64_t solved = solve(how, *dim, given, index_of_, sizes_);
      if (solved < 0) continue;
      for (uint32_t reader : readers_.at(static_cast<uint32_t>(solved))) wait(reader);
    }
  }

 private:
  void add(const Dim& dim, int64_t given) {
    if (dim.is_literal()) return;
    auto index = static_cast<uint32_t>(equations_.size());
    bool is_open = false;
    auto note = [&](const std::string& name) {
      uint32_t symbol = index_of_(name);
      if (symbol == Plan::kNoSymbol || sizes_[symbol] != kUnknown) return;
      readers_[symbol].push_back(index);
      is_open = true;
    };
    visit_symbols(dim, std::ref(note));
    if (!is_open) return;
    equations_.emplace_back(&dim, given);
    wait(index);
  }

  void wait(uint32_t index) {
    linear_.insert(index);
    monotone_.insert(index);
  }

  IndexOf index_of_;
  std::span<int64_t> sizes_;
  std::vector<std::pair<const Dim*, int64_t>> equations_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> readers_;  // by symbol
  std::set<uint32_t> linear_, monotone_;                         // those to try; the earliest comes first
};

void solve_all(std::span<const GivenDims> given, IndexOf index_of, std::span<int64_t> sizes) {
  Equations(given, index_of, sizes).solve_all();
}

Status check_given(const GivenDims& input, size_t axis, int64_t expected) {
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

void decide_sizes(std::span<const GivenDims> given, std::span<const int64_t> requested, IndexOf index_of,
                  std::span<int64_t> sizes) {
  std::fill(sizes.begin(), sizes.end(), kUnknown);
  for (const GivenDims& input : given)
    for (size_t i = 0; i < input.dims.size(); i++)
      if (input.type->dims[i].symbol_name()) solve(Solve::kLinear, input.type->dims[i], input.dims[i], index_of, sizes);
  solve_all(given, index_of, sizes);
  for (size_t i = 0; i < sizes.size(); i++)
    if (sizes[i] == kUnknown) sizes[i] = requested[i];
  solve_all(given, index_of, sizes);
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
      const Dim& dim = input.type->dims[i];
      if (only_unknown(dim, known) < 0) continue;
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

Status check_decided(std::span<const GivenDims> given, const KnownSizes& known) {
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
                                                          std::span<const GivenDims> given) {
  std::unordered_map<std::string_view, uint32_t> indices;
  for (uint32_t i = 0; i < symbols.size(); i++) indices.emplace(symbols[i], i);
  auto symbol = [&](std::string_view name) {
    auto found = indices.find(name);
    return found == indices.end() ? Plan::kNoSymbol : found->second;
  };
  IndexOf index_of(symbol);
  std::vector<int64_t> sizes(symbols.size(), kUnknown);
  solve_all(given, index_of, sizes);
  KnownSizes known{index_of, sizes};
  RLX_TRY(check_solved(given, known));
  RLX_TRY(check_agreement(given, std::cref(known)));
  std::vector<std::optional<int64_t>> found;
  for (int64_t size : sizes) found.push_back(size == kUnknown ? std::nullopt : std::optional(size));
  return found;
}

}  // namespace rlx
