// SPDX-License-Identifier: Apache-2.0
// Symbols and guards, and what follows from them.
#include "ir/sizes.h"

#include <algorithm>
#include <array>

#include "base/dim_gathered.h"
#include "base/dim_parts.h"
#include "base/undo.h"
#include "ir/size_proof.h"

namespace rlx {

// ---- symbols ----

const std::pair<std::string, Interval>* SizeScope::find_symbol(std::string_view name) const {
  for (const SizeScope* scope = this; scope; scope = scope->around_) {
    auto found = scope->symbol_index_.find(name);
    if (found != scope->symbol_index_.end()) return &scope->symbols_[found->second];
  }
  return nullptr;
}

bool SizeScope::has_symbol(std::string_view name) const {
  return find_symbol(name) != nullptr;
}

Interval SizeScope::symbol_range(std::string_view name) const {
  const auto* found = find_symbol(name);
  return found ? found->second : Interval();
}

Interval SizeScope::declared_range(const Dim& dim) const {
  return range_of(dim, [this](std::string_view name) { return symbol_range(name); });
}

Interval SizeScope::bounded(Interval range) {
  if (range.hi == Interval::kUnbounded) range.hi = std::max(range.lo, kLargestSymbol);
  return range;
}

Interval SizeScope::range(const Dim& dim) const {
  return range_of(dim, [this](std::string_view name) { return bounded(symbol_range(name)); });
}

Dim SizeScope::not_negative(const Dim& dim) const {
  Dim size = gathered(dim);
  return range(size).lo >= 0 ? size : max(Dim(0), size);
}

Status SizeScope::declare_symbol(std::string_view name, Interval range) {
  const auto* known = find_symbol(name);
  Interval before = known ? known->second : Interval();
  Interval both = intersection(before, range);
  auto refuse = [&](const std::string& why) {
    return Status(Code::kRange, format("the size '{}' {}", name, why)).with("value", name);
  };
  if (name.empty()) return Status(Code::kInvalidArgument, "a size must have a name");
  if (range.lo < 0) return refuse(format("has the minimum {}: no size is negative", range.lo));
  if (range.lo > kLargestSize) return refuse(format("has the minimum {}: no size is above 2^48", range.lo));
  if (range.lo > range.hi)
    return refuse(format("has no legal value: its minimum {} is above its maximum {}", range.lo, range.hi));
  if (both.lo > both.hi)
    return refuse(format("cannot be in [{}, {}] and in [{}, {}]", before.lo, before.hi, range.lo, range.hi))
        .with("expected", format("within [{}, {}]", before.lo, before.hi))
        .with("got", format("[{}, {}]", range.lo, range.hi));
  if (known && both == before) return {};
  auto own = symbol_index_.find(name);
  if (own != symbol_index_.end()) {
    narrowed_.emplace_back(own->second, before);
    symbols_[own->second].second = both;
  } else {
    symbols_.emplace_back(name, both);
    Undo undo([&] { symbols_.pop_back(); });
    symbol_index_.emplace(name, static_cast<uint32_t>(symbols_.size() - 1));
    undo.commit();
  }
  return {};
}

// ---- guards ----

// The same for the opposite difference.
static size_t hash_of_either_sign(const Dim& difference) {
  return difference.hash() ^ hash_of_opposite(difference);
}

// Equal for a = b and b = a.
static size_t guard_hash(Guard::Relation relation, const Dim& difference) {
  return relation == Guard::kLessEqual ? difference.hash() : hash_of_either_sign(difference);
}

std::optional<uint32_t> SizeScope::find_guard(Guard::Relation relation, const Dim& difference) const {
  if (guards_.empty()) return std::nullopt;
  auto [first, last] = guard_index_.equal_range(guard_hash(relation, difference));
  for (auto at = first; at != last; ++at) {
    const Guard& guard = guards_[at->second];
    if (guard.relation != relation) continue;
    bool is_it = guard.b - guard.a == difference || (relation == Guard::kEqual && guard.a - guard.b == difference);
    if (is_it) return at->second;
  }
  return std::nullopt;
}

bool SizeScope::has_guard(Guard::Relation relation, const Dim& difference) const {
  return find_guard(relation, difference) || (around_ && around_->has_guard(relation, difference));
}

bool SizeScope::narrows_ranges() const {
  return !by_guards_.empty() || (around_ && around_->narrows_ranges());
}

// From k * s + c >= 0, where s is the only symbol, the least or the largest s.
void SizeScope::learn_range(const Guard& guard) {
  Dim difference = guard.b - guard.a;
  if (guard.relation != Guard::kLessEqual || difference.is_literal()) return;
  const Term& term = difference.polynomial()->terms[0];
  if (term.atoms.size() != 1 || term.atoms[0]->kind != Atom::kSymbol) return;
  Dim rest = difference - Dim::from({{term}});
  if (!rest.is_literal()) return;
  bool is_least = term.coefficient > 0;
  Dim limit = is_least ? Dim(0) - floor_div(rest, term.coefficient) : floor_div(rest, Dim(0) - term.coefficient);
  Interval legal = is_least ? Interval{limit.literal(), Interval::kUnbounded} : Interval{0, limit.literal()};
  by_guards_.narrow(term.atoms[0]->name, legal, guards_.size());
}

// The difference of the operands of each min and max.
static void visit_extremes(const Dim& dim, const std::function<void(const Dim& order)>& visit) {
  if (dim.is_literal()) return;
  rewritten(dim, [&](Atom::Kind kind, const Dim& a, const Dim& b) -> std::optional<Dim> {
    if (kind == Atom::kMax || kind == Atom::kMin) visit(b - a);
    return std::nullopt;
  });
}

bool SizeScope::implies(Guard::Relation relation, const Dim& a, const Dim& b) const {
  return Proof(*this).implies(relation, a, b);
}

Dim SizeScope::resolved(const Dim& dim) const {
  return dim.is_literal() ? dim : Proof(*this).resolved(dim);
}

Dim SizeScope::reduced(const Dim& dim) const {
  return reduced(dim, &Equalities::find);
}

Dim SizeScope::reduced(const Dim& dim, const Dim* (Equalities::*find)(std::string_view) const) const {
  if (dim.is_literal()) return dim;
  constexpr int64_t kMaxRounds = 64, kMaxParts = 256;
  auto solution = [&](std::string_view symbol) -> std::optional<Dim> {
    for (const SizeScope* scope = this; scope; scope = scope->around_)
      if (const Dim* found = (scope->equalities_.*find)(symbol)) return *found;
    return std::nullopt;
  };
  bool is_known = false;
  for (const SizeScope* scope = this; scope; scope = scope->around_) is_known |= !scope->equalities_.empty();
  if (!is_known) return dim;
  Dim now = dim;
  for (int64_t round = 0; round < kMaxRounds; round++) {
    Dim next = substitute(now, solution);
    if (next == now || next.parts() > kMaxParts) break;
    now = std::move(next);
  }
  return now;
}

void visit_symbols(const Guard& guard, VisitSymbol visit) {
  for (const Dim* dim : {&guard.a, &guard.b}) visit_symbols(*dim, visit);
}

std::string text_of(const Guard& guard) {
  return format("{} {} {}", guard.a, guard.relation == Guard::kEqual ? "=" : "<=", guard.b);
}

static Status refused(const Guard& guard, const std::string& why) {
  std::string where = guard.where.empty() ? "" : guard.where + ": ";
  return Status(Code::kShape, where + text_of(guard) + " does not hold" + why);
}

// Whether no sizes satisfy it, as far as ranges and the equations of single symbols tell.
bool SizeScope::is_refuted(const Guard& guard) const {
  auto is_never = [&](const Dim& difference) {
    Interval values = range_of_reduced(difference);
    return values.hi < 0 || (guard.relation == Guard::kEqual && (values.lo > 0 || is_never_zero(difference)));
  };
  Dim difference = guard.b - guard.a;
  return is_never(difference) || is_never(reduced(difference));
}

// The range of a dim whose symbols are not solved. A symbol is also within the ranges of those that equal it.
Interval SizeScope::range_of_reduced(const Dim& dim) const {
  return range_of(dim, [this](std::string_view name) {
    Interval range = symbol_range(name);
    for (const SizeScope* scope = this; scope; scope = scope->around_) range = scope->equalities_.narrowed(name, range);
    return bounded(range);
  });
}

// Whether it says that a = b; so do a <= b and b <= a together.
bool SizeScope::is_equation(const Guard& guard) const {
  if (guard.relation == Guard::kEqual) return true;
  Dim difference = guard.b - guard.a;
  return range(difference).hi == 0 || has_guard(Guard::kLessEqual, guard.a - guard.b);
}

// Solves a guard that is an equation for a symbol; null where it says nothing new of one.
const std::string* SizeScope::solve(const Guard& guard) {
  if (!is_equation(guard)) return nullptr;
  Dim zero = guard.b - guard.a;
  Dim rest = reduced(zero);
  const std::string* symbol = equalities_.learn(rest, guards_.size());
  if (symbol || rest.is(0)) return symbol;  // 0: known already
  return equalities_.learn_linear(reduced(zero, &Equalities::find_linear), guards_.size());
}

// Whether nothing that is learned later can refute it before it refutes the range of a symbol: it relates two symbols
// that are equal by linear solutions, which stay.
bool SizeScope::is_settled(const Guard& guard) const {
  return guard.a.symbol_name() && guard.b.symbol_name() && reduced(guard.b - guard.a, &Equalities::find_linear).is(0);
}

// Draws conclusions from a new guard and the earlier ones. An earlier equation may become solvable. If no size can
// satisfy an earlier guard any more, the new one is in error.
Status SizeScope::learn(uint32_t index) {
  Status status;
  visit_symbols(guards_[index], [&](const std::string& name) {
    Interval left = by_guards_.narrowed(name, symbol_range(name));
    if (left.lo > left.hi) status = refused(guards_[index], format(", as other guards leave no size for '{}'", name));
  });
  RLX_TRY(std::move(status));
  std::vector<uint32_t> waiting{index};
  for (bool is_new = true; !waiting.empty(); is_new = false) {
    const Guard& guard = guards_[waiting.back()];
    waiting.pop_back();
    if (is_refuted(guard)) return refused(guards_[index], &guard == &guards_[index] ? "" : ", as " + text_of(guard));
    const std::string* symbol = solve(guard);
    if (is_new && !is_settled(guard)) equalities_.watch(guard.b - guard.a, index, guards_.size());
    if (!symbol) continue;
    auto ask_again = [&](const std::string& name) {
      std::vector<uint32_t> guards = equalities_.watching(name);
      waiting.insert(waiting.end(), guards.begin(), guards.end());
    };
    ask_again(*symbol);
    for (const std::string& name : equalities_.depending_on(*symbol)) {
      Dim equal = reduced(Dim::symbol(name));
      Interval values = range_of_reduced(equal), legal = equalities_.narrowed(name, symbol_range(name));
      if (values.hi < legal.lo || values.lo > legal.hi)
        return refused(guards_[index], format(", as '{}' is in [{}, {}]", name, legal.lo, legal.hi));
      const std::string* other = equal.symbol_name();
      if (other && equalities_.narrow(*other, legal, guards_.size())) ask_again(*other);
    }
  }
  return {};
}

static size_t term_count(const Dim& dim) {
  return dim.is_literal() ? size_t{!dim.is(0)} : dim.polynomial()->terms.size();
}

// x = min(x, y) says that x <= y, and x = max(x, y) that y <= x. Written so, it takes part in more proofs.
static Guard in_normal_form(Guard guard) {
  Dim difference = guard.b - guard.a;
  if (guard.relation != Guard::kEqual || difference.is_literal()) return guard;
  for (const Term& term : difference.polynomial()->terms) {
    if (!is_extreme(term) || (term.coefficient != 1 && term.coefficient != -1)) continue;
    const Atom& atom = *term.atoms[0];
    size_t others = term_count(difference) - 1;  // counted first: to subtract each of many min takes quadratic time
    if (term_count(atom.a) != others && term_count(atom.b) != others) continue;
    Dim equal = Dim(-term.coefficient) * (difference - Dim::from({{term}}));
    if (!(equal == atom.a) && !(equal == atom.b)) continue;
    const Dim& other = equal == atom.a ? atom.b : atom.a;
    bool is_less = atom.kind == Atom::kMin;
    return {Guard::kLessEqual, is_less ? equal : other, is_less ? other : equal, std::move(guard.where),
            guard.is_derived};
  }
  return guard;
}

// The guard in terms of what is known by now.
Guard SizeScope::resolved(const Guard& guard) const {
  return in_normal_form({guard.relation, resolved(guard.a), resolved(guard.b), guard.where, guard.is_derived});
}

// In its normal form; or why no sizes satisfy it.
Result<Guard> SizeScope::checked(Guard guard) const {
  guard = in_normal_form(std::move(guard));
  Guard normal = resolved(guard);
  if (is_refuted(normal)) return refused(guard, "");
  return normal;
}

Status SizeScope::add_guard(Guard guard) {
  Guard normal = RLX_TRY(checked(guard));
  if (!implies(normal.relation, normal.a, normal.b)) return record(guard, std::move(normal));
  // In a graph read from text, the guard of a node is declared before the node.
  auto known = find_guard(normal.relation, normal.b - normal.a);
  if (known && (!guard.is_derived || guards_[*known].where == guard.where)) set_derived(*known, guard.is_derived);
  return {};
}

Status SizeScope::declare_guard(Guard guard) {
  return record(guard, RLX_TRY(checked(guard)));
}

// The guard, and what follows from it: its normal form, which rests on the guards that are known by now; and where it
// decides a min or max of an earlier guard, that guard without it.
Status SizeScope::record(const Guard& guard, Guard normal) {
  Mark before = mark();
  Status status = guard.is_derived ? Status() : record_alone(in_normal_form(guard));
  normal.is_derived = true;
  if (status.ok()) status = record_alone(std::move(normal));
  for (size_t i = before.guards; status.ok() && i < guards_.size(); i++) {
    auto [first, last] = undecided_.equal_range(hash_of_either_sign(guards_[i].b - guards_[i].a));
    std::vector<uint32_t> decided;
    for (auto at = first; at != last; ++at) decided.push_back(at->second);
    for (size_t k = 0; status.ok() && k < decided.size(); k++) {
      Result<Guard> shorter = checked(guards_[decided[k]]);
      status = shorter.status();
      if (!shorter.ok() || implies(shorter->relation, shorter->a, shorter->b)) continue;
      shorter->is_derived = true;
      status = record_alone(std::move(*shorter));
    }
  }
  if (!status.ok()) roll_back(before);
  return status;
}

SizeScope::GuardKeys SizeScope::keys_of(const Guard& guard) {
  Dim difference = guard.b - guard.a;
  GuardKeys keys{guard_hash(guard.relation, difference), {}};
  visit_extremes(difference, [&](const Dim& order) { keys.orders.push_back(hash_of_either_sign(order)); });
  return keys;
}

void SizeScope::set_derived(uint32_t guard, bool is_derived) {
  if (guards_[guard].is_derived == is_derived) return;
  rederived_.emplace_back(guard, !is_derived);
  guards_[guard].is_derived = is_derived;
}

// Memory may not have sufficed for all its keys.
void SizeScope::forget_last_guard(const GuardKeys& keys) {
  auto index = static_cast<uint32_t>(guards_.size() - 1);
  auto forget = [&](auto& by_hash, size_t hash) {
    auto [first, last] = by_hash.equal_range(hash);
    auto entry = std::find_if(first, last, [&](const auto& it) { return it.second == index; });
    if (entry != last) by_hash.erase(entry);
  };
  forget(guard_index_, keys.difference);
  for (size_t order : keys.orders) forget(undecided_, order);
  guards_.pop_back();
}

// Records the guard, unless it says nothing new.
Status SizeScope::record_alone(Guard guard) {
  Dim difference = guard.b - guard.a;
  RLX_TRY(check_parts(std::array{guard.a, guard.b}));
  if (difference.is(0)) return {};
  if (auto known = find_guard(guard.relation, difference); known && !guard.is_derived) set_derived(*known, false);
  if (has_guard(guard.relation, difference)) return {};
  GuardKeys keys = keys_of(guard);
  auto index = static_cast<uint32_t>(guards_.size());
  guards_.push_back(std::move(guard));
  Undo undo([&] { forget_last_guard(keys); });
  guard_index_.emplace(keys.difference, index);
  for (size_t order : keys.orders) undecided_.emplace(order, index);
  undo.commit();
  learn_range(guards_.back());
  return learn(index);
}

// ---- roll-back ----

void SizeScope::roll_back(const Mark& mark) {
  for (; rederived_.size() > mark.rederived; rederived_.pop_back())
    guards_[rederived_.back().first].is_derived = rederived_.back().second;
  while (narrowed_.size() > mark.narrowed) {
    symbols_[narrowed_.back().first].second = narrowed_.back().second;
    narrowed_.pop_back();
  }
  while (symbols_.size() > mark.symbols) {
    symbol_index_.erase(symbols_.back().first);
    symbols_.pop_back();
  }
  equalities_.forget_after(mark.guards);
  by_guards_.forget_after(mark.guards);
  while (guards_.size() > mark.guards) forget_last_guard(keys_of(guards_.back()));
}

void SizeScope::remove_symbols(const std::set<std::string>& names) {
  if (std::erase_if(symbols_, [&](const auto& entry) { return names.contains(entry.first); }) == 0) return;
  symbol_index_.clear();
  for (uint32_t i = 0; i < symbols_.size(); i++) symbol_index_.emplace(symbols_[i].first, i);
  narrowed_.clear();
}

}  // namespace rlx
