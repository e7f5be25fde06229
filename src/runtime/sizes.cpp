// SPDX-License-Identifier: Apache-2.0
// The size table of an exec. New sizes are worked out beside the present ones and replace them only when everything
// has been checked.
#include "runtime/sizes.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/nearest.h"
#include "base/size_failure.h"
#include "ir/broken_guard.h"

namespace rlx {

namespace {

// The index of a symbol of the plan.
struct SymbolsOf {
  const Plan& plan;
  uint32_t operator()(std::string_view name) const { return plan.symbol(name); }
};

// What a size counts as until the run finds it: the size that the last run found, if any. Nothing is read or written
// with it.
int64_t size_until_found(const PlanSymbol& symbol, int64_t last) {
  if (last != kUnknownSize) return last;
  return symbol.is_open ? symbol.range.lo : symbol.upper;
}

Status check_guard(const Graph& graph, const Guard& guard, const SymbolLookup& lookup) {
  int64_t a = RLX_TRY(evaluate(guard.a, lookup)), b = RLX_TRY(evaluate(guard.b, lookup));
  if (holds(guard.relation, a, b)) return {};
  return broken_guard(graph, guard, lookup);
}

// Whether the dim has a size that this run has yet to find. found: by symbol.
bool is_pending(const Plan& plan, const std::vector<bool>& found, const Dim& dim) {
  bool any = false;
  auto note = [&](const std::string& name) {
    uint32_t id = plan.symbol(name);
    any |= id != Plan::kNoSymbol && plan.symbols[id].is_fresh() && !found[id];
  };
  visit_symbols(dim, std::ref(note));
  return any;
}

// Checks those of the guards that have all their sizes.
Status check_guards(const Plan& plan, std::span<const uint32_t> guards, const std::vector<bool>& found,
                    const SymbolLookup& lookup) {
  for (uint32_t index : guards) {
    const Guard& guard = plan.guard(index);
    if (!is_pending(plan, found, guard.a) && !is_pending(plan, found, guard.b))
      RLX_TRY(check_guard(plan.graph(), guard, lookup));
  }
  return {};
}

// The value of an entry of the size table. One that divides by a size which the run has yet to find has none yet: it is
// 0 until then.
Result<int64_t> entry(const Plan& plan, SizeId id, const std::vector<bool>& found, const SymbolLookup& lookup) {
  auto size = evaluate(plan.sizes[id], lookup);
  return !size.ok() && is_pending(plan, found, plan.sizes[id]) ? 0 : std::move(size);
}

Status of_sizes(Status status) {
  return status.ok() ? status : std::move(status).with(kDependsOnSizes, "1");
}

Status of_found_sizes(Status status) {
  return status.ok() ? status : of_sizes(std::move(status)).with(kFoundSizes, "1");
}

}  // namespace

Status check_range(const PlanSymbol& symbol, int64_t size) {
  if (size >= symbol.range.lo && size <= symbol.upper) return {};
  bool is_above = size > symbol.upper, is_planned = is_above && symbol.upper < symbol.range.hi;
  int64_t limit = is_above ? symbol.upper : symbol.range.lo;
  std::string_view side = is_planned ? "above the planned" : is_above ? "above the largest" : "below the smallest";
  return Status(Code::kRange, format("the size '{}' = {} is {} {}{}", symbol.name, size, side, limit,
                                     is_planned ? format(": the option dims.{} plans for more", symbol.name) : ""))
      .with("value", symbol.name)
      .with("expected", format("at {} {}", is_above ? "most" : "least", limit))
      .with("got", std::to_string(size));
}

SizeState::SizeState(const Plan& plan)
    : symbols_(plan.symbols.size(), kUnknownSize),
      values_(plan.sizes.size(), kUnknownSize),
      next_(plan.sizes.size()),
      next_symbols_(plan.symbols.size()),
      found_(plan.symbols.size(), false),
      changed_(plan.sizes.size(), 0) {}

Result<uint32_t> check_dim(const Plan& plan, std::string_view symbol, int64_t size) {
  if (uint32_t i = plan.symbol(symbol); i != Plan::kNoSymbol) {
    RLX_TRY(check_range(plan.symbols[i], size));
    if (!plan.symbols[i].is_fresh()) return i;
    return Status(Code::kInvalidArgument, format("the run finds the size '{}': it cannot be set", symbol))
        .with("value", symbol);
  }
  std::vector<std::string_view> known;
  for (const PlanSymbol& it : plan.symbols) known.push_back(it.name);
  return Status(Code::kNotFound, format("there is no size '{}'{}", symbol, only(known)))
      .with("value", symbol)
      .with("expected", listed(known));
}

Status SizeState::resolve(const Plan& plan, std::span<const GivenDims> given, std::span<const int64_t> requested) {
  SymbolsOf by_name{plan};
  std::fill(found_.begin(), found_.end(), false);
  std::span<int64_t> next(next_symbols_);
  auto legal = [&](uint32_t i) { return Interval{plan.symbols[i].range.lo, plan.symbols[i].upper}; };
  solve_sizes(given, requested, by_name, legal, next);
  for (size_t i = 0; i < next.size(); i++) {
    const PlanSymbol& it = plan.symbols[i];
    if (it.is_fresh()) next[i] = size_until_found(it, symbols_[i]);
    if (next[i] == kUnknownSize) next[i] = it.upper;
  }
  KnownSizes known{by_name, next};
  SymbolLookup lookup = std::cref(known);
  RLX_TRY(choose(plan, lookup));
  for (const GivenDims& input : given)
    if (Status wrong = check_given(input, lookup); !wrong.ok()) {
      solve_sizes(given, requested, by_name, legal, next);  // without the planned sizes, which nobody has given
      RLX_TRY(check_determined(given, known));
      return wrong;
    }
  for (size_t i = 0; i < next.size(); i++) RLX_TRY(of_sizes(check_range(plan.symbols[i], next[i])));
  RLX_TRY(of_sizes(check_guards(plan, plan.given_guards, found_, lookup)));
  return of_sizes(evaluate_table(plan));
}

Status SizeState::assign(const Plan& plan, std::span<const int64_t> symbols) {
  std::fill(found_.begin(), found_.end(), false);
  for (size_t i = 0; i < symbols.size(); i++) {
    const PlanSymbol& it = plan.symbols[i];
    bool is_found_later = it.is_fresh() || symbols[i] == kUnknownSize;
    next_symbols_[i] = is_found_later ? size_until_found(it, symbols_[i]) : symbols[i];
    RLX_TRY(check_range(it, next_symbols_[i]));
  }
  SymbolsOf by_name{plan};
  KnownSizes known{by_name, next_symbols_};
  RLX_TRY(choose(plan, std::cref(known)));
  RLX_TRY(of_found_sizes(check_guards(plan, plan.given_guards, found_, std::cref(known))));
  return evaluate_table(plan);
}

// Updates only what names the symbol: a run may find thousands of sizes.
Status SizeState::set_fresh(const Plan& plan, uint32_t fresh, int64_t size) {
  const PlanSymbol& it = plan.symbols[fresh];
  RLX_TRY(check_range(it, size));
  int64_t before = std::exchange(symbols_[fresh], size);
  found_[fresh] = true;
  SymbolsOf by_name{plan};
  KnownSizes known{by_name, symbols_};
  SymbolLookup lookup = std::cref(known);
  auto evaluate_all = [&]() -> Status {
    RLX_TRY(of_found_sizes(check_guards(plan, it.guards, found_, lookup)));
    for (SizeId id : it.sizes) next_[id] = RLX_TRY(entry(plan, id, found_, lookup));
    return {};
  };
  Status status = evaluate_all();
  if (!status.ok()) {
    symbols_[fresh] = before;
    return status;
  }
  auto moves = [this](SizeId id) { return next_[id] != values_[id]; };
  if (size != before || std::any_of(it.sizes.begin(), it.sizes.end(), moves)) version_++;
  for (SizeId id : it.sizes) take_next(id);
  return {};
}

// Sets the symbols that a condition chooses from two other sizes.
Status SizeState::choose(const Plan& plan, const SymbolLookup& lookup) {
  for (const ChosenSize& size : plan.chosen) {
    next_symbols_[size.symbol] = 0;
    bool first = RLX_TRY(evaluate(size.when, lookup)) != 0;
    next_symbols_[size.symbol] = RLX_TRY(evaluate(first ? size.then : size.otherwise, lookup));
    RLX_TRY(check_range(plan.symbols[size.symbol], next_symbols_[size.symbol]));
  }
  return {};
}

Status SizeState::evaluate_table(const Plan& plan) {
  SymbolsOf by_name{plan};
  KnownSizes known{by_name, next_symbols_};
  SymbolLookup lookup = std::cref(known);
  for (SizeId id = 0; id < next_.size(); id++) next_[id] = RLX_TRY(entry(plan, id, found_, lookup));
  commit();
  return {};
}

void SizeState::take_next(SizeId id) {
  if (next_[id] == values_[id]) return;
  values_[id] = next_[id];
  changed_[id] = version_;
}

void SizeState::commit() {
  if (version_ > 0 && next_symbols_ == symbols_) return;  // then no entry of the table has changed
  version_++;
  for (SizeId id = 0; id < next_.size(); id++) take_next(id);
  std::copy(next_symbols_.begin(), next_symbols_.end(), symbols_.begin());
}

}  // namespace rlx
