// SPDX-License-Identifier: Apache-2.0
#include "runtime/sizes.h"

#include <algorithm>
#include <functional>

#include "base/nearest.h"

namespace rlx {

namespace {

constexpr int64_t kUnknown = -1;

// Symbols by name over two parallel lists; what `evaluate` asks.
template <class Names>
struct Known {
  const Names& names;
  std::span<const int64_t> sizes;
  int64_t index(std::string_view name) const {
    for (size_t i = 0; i < sizes.size(); i++)
      if (names(i) == name) return static_cast<int64_t>(i);
    return -1;
  }
  std::optional<int64_t> operator()(std::string_view name) const {
    int64_t i = index(name);
    return i < 0 || sizes[static_cast<size_t>(i)] == kUnknown ? std::nullopt
                                                              : std::optional(sizes[static_cast<size_t>(i)]);
  }
};

// The symbol that alone is unknown in a dim, or -1.
template <class Names>
int64_t lone_unknown(const Dim& dim, const Known<Names>& known) {
  int64_t lone = -1;
  bool several = false;
  auto note = [&](const std::string& name) {
    int64_t i = known.index(name);
    if (i < 0 || known.sizes[static_cast<size_t>(i)] != kUnknown) return;
    several |= lone >= 0 && lone != i;
    lone = i;
  };
  visit_symbols(dim, std::ref(note));
  return several ? -1 : lone;
}

// A dim that is linear in its one unknown symbol gives the symbol: s = (given - f(0)) / (f(1) - f(0)).
template <class Names>
bool solve(const Dim& dim, int64_t given, const Names& names, std::span<int64_t> sizes) {
  Known<Names> known{names, sizes};
  int64_t lone = lone_unknown(dim, known);
  if (lone < 0) return false;
  int64_t& size = sizes[static_cast<size_t>(lone)];
  auto at = [&](int64_t value) {
    size = value;
    return evaluate(dim, std::cref(known));
  };
  auto zero = at(0), one = at(1);
  size = kUnknown;
  if (!zero.ok() || !one.ok() || *one == *zero) return false;
  int64_t solution = (given - *zero) / (*one - *zero);
  if (solution < 0) return false;
  auto check = at(solution);
  if (check.ok() && *check == given) return true;
  size = kUnknown;
  return false;
}

template <class Names>
void solve_all(std::span<const GivenDims> given, const Names& names, std::span<int64_t> sizes) {
  for (bool progress = true; progress;) {
    progress = false;
    for (const GivenDims& input : given)
      for (size_t i = 0; i < input.dims.size(); i++)
        if (!input.type->dims[i].is_literal()) progress |= solve(input.type->dims[i], input.dims[i], names, sizes);
  }
}

Status check_given(const GivenDims& input, const SymbolLookup& lookup) {
  for (size_t i = 0; i < input.dims.size(); i++) {
    const Dim& dim = input.type->dims[i];
    int64_t expected = RLX_TRY(evaluate(dim, lookup));
    if (expected == input.dims[i]) continue;
    return Status(Code::kShape, format("'{}', axis {}: {} is {}, not {}", input.name, i,
                                       dim.is_literal() ? "the size" : dim.text(), expected, input.dims[i]))
        .with("value", input.name)
        .with("expected", std::to_string(expected))
        .with("got", std::to_string(input.dims[i]));
  }
  return {};
}

Status check_range(const PlanSymbol& symbol, int64_t size) {
  if (size >= symbol.range.lo && size <= symbol.upper) return {};
  const char* what = size > symbol.upper ? "is above the planned" : "is below the smallest";
  return Status(Code::kRange, format("the size '{}' = {} {} {}", symbol.name, size, what,
                                     size > symbol.upper ? symbol.upper : symbol.range.lo))
      .with("value", symbol.name)
      .with("got", std::to_string(size));
}

Status check_guard(const Guard& guard, const SymbolLookup& lookup) {
  int64_t a = RLX_TRY(evaluate(guard.a, lookup)), b = RLX_TRY(evaluate(guard.b, lookup));
  if (guard.relation == Guard::kEqual ? a == b : a <= b) return {};
  return Status(Code::kShape, format("{}: {} {} {} does not hold: {} and {}", guard.where, guard.a,
                                     guard.relation == Guard::kEqual ? "=" : "<=", guard.b, a, b))
      .with("op", guard.where);
}

// The step before which all symbols of a guard are known.
uint32_t guard_step(const Plan& plan, const Guard& guard) {
  uint32_t a = plan.known_at(guard.a), b = plan.known_at(guard.b);
  return a == PlanSymbol::kGiven ? b : b == PlanSymbol::kGiven ? a : std::max(a, b);
}

}  // namespace

SizeState::SizeState(const Plan& plan)
    : symbols_(plan.symbols.size(), kUnknown),
      wished_(plan.symbols.size(), kUnknown),
      values_(plan.sizes.size(), kUnknown),
      next_(plan.sizes.size()),
      next_symbols_(plan.symbols.size()) {
  changed_.reserve(plan.sizes.size());
}

Status SizeState::set_dim(const Plan& plan, std::string_view symbol, int64_t size) {
  for (size_t i = 0; i < plan.symbols.size(); i++) {
    if (plan.symbols[i].name != symbol) continue;
    RLX_TRY(check_range(plan.symbols[i], size));
    wished_[i] = size;
    return {};
  }
  std::vector<std::string_view> known;
  for (const PlanSymbol& it : plan.symbols) known.push_back(it.name);
  return Status(Code::kNotFound, "there is no size '" + std::string(symbol) + "', only " + listed(known))
      .with("value", symbol);
}

Status SizeState::resolve(const Plan& plan, std::span<const GivenDims> given) {
  auto names = [&plan](size_t i) -> std::string_view { return plan.symbols[i].name; };
  std::fill(next_symbols_.begin(), next_symbols_.end(), kUnknown);
  std::span<int64_t> next(next_symbols_);
  for (const GivenDims& input : given)
    for (size_t i = 0; i < input.dims.size(); i++)
      if (input.type->dims[i].symbol_name()) solve(input.type->dims[i], input.dims[i], names, next);
  solve_all(given, names, next);
  for (size_t i = 0; i < next.size(); i++)
    if (next[i] == kUnknown) next[i] = wished_[i];
  solve_all(given, names, next);
  for (size_t i = 0; i < next.size(); i++) {
    const PlanSymbol& symbol = plan.symbols[i];
    if (symbol.is_fresh()) next[i] = symbols_[i] == kUnknown ? symbol.upper : symbols_[i];  // until the run knows
    if (next[i] == kUnknown) next[i] = symbol.upper;
  }
  Known<decltype(names)> known{names, next};
  SymbolLookup lookup = std::cref(known);
  for (const GivenDims& input : given) RLX_TRY(check_given(input, lookup));
  for (size_t i = 0; i < next.size(); i++) RLX_TRY(check_range(plan.symbols[i], next[i]));
  for (const Guard& guard : plan.graph().guards())
    if (guard_step(plan, guard) == PlanSymbol::kGiven) RLX_TRY(check_guard(guard, lookup));
  return evaluate_table(plan);
}

Status SizeState::set_fresh(const Plan& plan, uint32_t symbol, int64_t size) {
  RLX_TRY(check_range(plan.symbols[symbol], size));
  std::copy(symbols_.begin(), symbols_.end(), next_symbols_.begin());
  next_symbols_[symbol] = size;
  auto names = [&plan](size_t i) -> std::string_view { return plan.symbols[i].name; };
  Known<decltype(names)> known{names, next_symbols_};
  SymbolLookup lookup = std::cref(known);
  for (const Guard& guard : plan.graph().guards())
    if (guard_step(plan, guard) == plan.symbols[symbol].made_by) RLX_TRY(check_guard(guard, lookup));
  return evaluate_table(plan);
}

Status SizeState::evaluate_table(const Plan& plan) {
  auto names = [&plan](size_t i) -> std::string_view { return plan.symbols[i].name; };
  Known<decltype(names)> known{names, next_symbols_};
  SymbolLookup lookup = std::cref(known);
  for (size_t i = 0; i < next_.size(); i++) next_[i] = RLX_TRY(evaluate(plan.sizes[i], lookup));
  commit();
  return {};
}

void SizeState::commit() {
  for (SizeId i = 0; i < next_.size(); i++) {
    if (next_[i] == values_[i]) continue;
    values_[i] = next_[i];
    if (std::find(changed_.begin(), changed_.end(), i) == changed_.end()) changed_.push_back(i);
  }
  std::copy(next_symbols_.begin(), next_symbols_.end(), symbols_.begin());
}

std::vector<std::optional<int64_t>> solve_symbols(std::span<const std::string_view> symbols,
                                                  std::span<const GivenDims> given) {
  auto names = [symbols](size_t i) { return symbols[i]; };
  std::vector<int64_t> sizes(symbols.size(), kUnknown);
  solve_all(given, names, sizes);
  std::vector<std::optional<int64_t>> found;
  for (int64_t size : sizes) found.push_back(size == kUnknown ? std::nullopt : std::optional(size));
  return found;
}

}  // namespace rlx
