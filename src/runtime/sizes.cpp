// SPDX-License-Identifier: Apache-2.0
#include "runtime/sizes.h"

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/nearest.h"
#include "base/size_failure.h"
#include "ir/broken_guard.h"

namespace rlx {

namespace {

constexpr int64_t kUnknown = SizeState::kUnknown;

using IndexOf = FunctionRef<uint32_t(std::string_view name)>;  // the index of a symbol, or Plan::kNoSymbol

// The known sizes of symbols, as a lookup for `evaluate`.
struct Known {
  const IndexOf& index_of;
  std::span<const int64_t> sizes;
  std::optional<int64_t> operator()(std::string_view name) const {
    uint32_t i = index_of(name);
    return i == Plan::kNoSymbol || sizes[i] == kUnknown ? std::nullopt : std::optional(sizes[i]);
  }
};

// The only unknown symbol of a dim, or -1.
int64_t only_unknown(const Dim& dim, const Known& known) {
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
int64_t solve(Solve how, const Dim& dim, int64_t given, const IndexOf& index_of, std::span<int64_t> sizes) {
  Known known{index_of, sizes};
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
  Equations(std::span<const GivenDims> given, const IndexOf& index_of, std::span<int64_t> sizes)
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

  const IndexOf& index_of_;
  std::span<int64_t> sizes_;
  std::vector<std::pair<const Dim*, int64_t>> equations_;
  std::unordered_map<uint32_t, std::vector<uint32_t>> readers_;  // by symbol
  std::set<uint32_t> linear_, monotone_;                         // those to try; the earliest comes first
};

void solve_all(std::span<const GivenDims> given, const IndexOf& index_of, std::span<int64_t> sizes) {
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

Status check_given(const GivenDims& input, const SymbolLookup& lookup) {
  for (size_t i = 0; i < input.dims.size(); i++)
    RLX_TRY(check_given(input, i, RLX_TRY(evaluate(input.type->dims[i], lookup))));
  return {};
}

Status check_range(const PlanSymbol& symbol, int64_t size) {
  if (size >= symbol.range.lo && size <= symbol.upper) return {};
  bool is_above = size > symbol.upper;
  int64_t limit = is_above ? symbol.upper : symbol.range.lo;
  return Status(Code::kRange, format("the size '{}' = {} is {} {}", symbol.name, size,
                                     is_above ? "above the planned" : "below the smallest", limit))
      .with("value", symbol.name)
      .with("expected", format("at {} {}", is_above ? "most" : "least", limit))
      .with("got", std::to_string(size));
}

// A stand-in for a size that the run has yet to find: nothing is read or written with it.
int64_t placeholder(const PlanSymbol& symbol) {
  return symbol.is_open ? symbol.range.lo : symbol.upper;
}

Status check_guard(const Graph& graph, const Guard& guard, const SymbolLookup& lookup) {
  int64_t a = RLX_TRY(evaluate(guard.a, lookup)), b = RLX_TRY(evaluate(guard.b, lookup));
  if (guard.relation == Guard::kEqual ? a == b : a <= b) return {};
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
    const Guard& guard = plan.graph().guards()[index];
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

SizeState::SizeState(const Plan& plan)
    : symbols_(plan.symbols.size(), kUnknown),
      values_(plan.sizes.size(), kUnknown),
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

// The sizes that inputs and requests decide; the others are unknown.
static void decide(std::span<const GivenDims> given, std::span<const int64_t> requested, const IndexOf& index_of,
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

static Status check_decided(std::span<const GivenDims> given, const Known& known);

Status SizeState::resolve(const Plan& plan, std::span<const GivenDims> given, std::span<const int64_t> requested) {
  auto symbol = [&plan](std::string_view name) { return plan.symbol(name); };
  IndexOf index_of(symbol);
  std::fill(found_.begin(), found_.end(), false);
  std::span<int64_t> next(next_symbols_);
  decide(given, requested, index_of, next);
  for (size_t i = 0; i < next.size(); i++) {
    const PlanSymbol& it = plan.symbols[i];
    if (it.is_fresh())
      next[i] = symbols_[i] == kUnknown ? placeholder(it) : symbols_[i];  // a stand-in until the run finds it
    if (next[i] == kUnknown) next[i] = it.upper;
  }
  Known known{index_of, next};
  SymbolLookup lookup = std::cref(known);
  RLX_TRY(choose(plan, lookup));
  for (const GivenDims& input : given)
    if (Status wrong = check_given(input, lookup); !wrong.ok()) {
      decide(given, requested, index_of, next);  // without the planned sizes, which nobody has given
      RLX_TRY(check_decided(given, known));
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
    next_symbols_[i] = symbols[i];
    if (it.is_fresh() || symbols[i] == kUnknown)
      next_symbols_[i] = symbols_[i] == kUnknown ? placeholder(it) : symbols_[i];
    RLX_TRY(check_range(it, next_symbols_[i]));
  }
  auto symbol = [&plan](std::string_view name) { return plan.symbol(name); };
  IndexOf index_of(symbol);
  Known known{index_of, next_symbols_};
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
  auto symbol = [&plan](std::string_view name) { return plan.symbol(name); };
  IndexOf index_of(symbol);
  Known known{index_of, symbols_};
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
  auto symbol = [&plan](std::string_view name) { return plan.symbol(name); };
  IndexOf index_of(symbol);
  Known known{index_of, next_symbols_};
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

// Reports a dim whose last unknown symbol has no solution.
static Status check_solved(std::span<const GivenDims> given, const Known& known) {
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
static std::string unknown_of(const Dim& dim, const Known& known) {
  std::set<std::string> names;
  auto note = [&](const std::string& name) {
    if (!known(name)) names.insert(name);
  };
  visit_symbols(dim, std::ref(note));
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text;
}

// The same, and a dim that leaves several symbols open.
static Status check_decided(std::span<const GivenDims> given, const Known& known) {
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
  Known known{index_of, sizes};
  RLX_TRY(check_solved(given, known));
  RLX_TRY(check_agreement(given, std::cref(known)));
  std::vector<std::optional<int64_t>> found;
  for (int64_t size : sizes) found.push_back(size == kUnknown ? std::nullopt : std::optional(size));
  return found;
}

}  // namespace rlx
