// SPDX-License-Identifier: Apache-2.0
// A proof of a = b or a <= b has five levels. Each one asks those before it, and costs more:
// 1. has_guard: a guard says so of the difference b - a.
// 2. has_relation: the same dim, level 1, or the range of the difference, where guards may narrow that of a symbol.
// 3. is_at_most: level 2, also with one operand in the place of a min or max.
// 4. proves: level 3 for a <= b; for a = b level 2, also as a <= b and b <= a.
// 5. implies: false if it fails at a corner of the allowed sizes (Corners). Else level 4 of the dims as given, then of
//    the dims `resolved` (min and max that are decided become one operand), then of those also `reduced` (symbols in
//    terms of others, as equations say).
#include "ir/sizes.h"

#include <algorithm>
#include <array>

#include "base/dim_gathered.h"
#include "base/dim_parts.h"

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

static Interval bounded(Interval range) {
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
    symbol_index_.emplace(name, static_cast<uint32_t>(symbols_.size()));
    symbols_.emplace_back(name, both);
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

// For a term k * min(a, b) or k * max(a, b) of a dim: whether "the dim is >= 0" requires it with a as well as with b in
// the place of the min or max. Otherwise it follows from either.
static bool needs_both_operands(const Term& term) {
  return (term.atoms[0]->kind == Atom::kMax) == (term.coefficient < 0);
}

// A term of the dim that is k * min(a, b) or k * max(a, b), or null. One that needs both operands comes first, because
// it narrows the proof without a choice.
static const Term* extreme_in(const Dim& dim) {
  if (dim.is_literal()) return nullptr;
  const Term* found = nullptr;
  for (const Term& term : dim.polynomial()->terms) {
    if (!is_extreme(term)) continue;
    if (needs_both_operands(term)) return &term;
    if (!found) found = &term;
  }
  return found;
}

static size_t term_count(const Dim& dim) {
  return dim.is_literal() ? size_t{!dim.is(0)} : dim.polynomial()->terms.size();
}

constexpr int kExtremes = 4;  // how many min and max, one in the other, a proof takes apart

bool SizeScope::is_at_most(const Dim& a, const Dim& b, int depth) const {
  Dim difference = b - a;
  if (has_relation(Guard::kLessEqual, 0, difference)) return true;
  const Term* extreme = depth > 0 ? extreme_in(difference) : nullptr;
  if (!extreme) return false;
  const Atom& atom = *extreme->atoms[0];
  Dim rest = difference - Dim::from({{*extreme}});
  auto holds_with = [&](const Dim& operand) { return is_at_most(0, rest + extreme->coefficient * operand, depth - 1); };
  return needs_both_operands(*extreme) ? holds_with(atom.a) && holds_with(atom.b)
                                       : holds_with(atom.a) || holds_with(atom.b);
}

// Looks at the dims as given, without resolving them.
bool SizeScope::has_relation(Guard::Relation relation, const Dim& a, const Dim& b) const {
  if (a == b) return true;
  Dim difference = b - a;
  if (has_guard(Guard::kEqual, difference)) return true;
  if (relation == Guard::kEqual) return false;
  return range(difference).lo >= 0 || has_guard(Guard::kLessEqual, difference) ||
         (narrows_ranges() && range_by_guards(difference).lo >= 0);
}

bool SizeScope::narrows_ranges() const {
  return !by_guards_.empty() || (around_ && around_->narrows_ranges());
}

Interval SizeScope::range_by_guards(const Dim& dim) const {
  return range_of(dim, [this](std::string_view name) {
    Interval range = bounded(symbol_range(name));
    for (const SizeScope* scope = this; scope; scope = scope->around_) {
      Interval both = scope->by_guards_.narrowed(name, range);
      if (both.lo <= both.hi) range = both;  // else no size satisfies all guards
    }
    return range;
  });
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

bool SizeScope::proves(Guard::Relation relation, const Dim& a, const Dim& b) const {
  if (relation == Guard::kLessEqual) return is_at_most(a, b, kExtremes);
  Dim difference = b - a;
  if (has_relation(Guard::kEqual, 0, difference)) return true;
  return has_relation(Guard::kLessEqual, 0, difference) && has_relation(Guard::kLessEqual, difference, 0);
}

// Two sets of sizes, those that ranges and guards allow: each symbol at its least, and each at its largest. What does
// not hold at one of them has no proof. To see that costs far less than to look for one.
class SizeScope::Corners {
 public:
  explicit Corners(const SizeScope& scope) : scope_(scope) {
    for (const SizeScope* at = &scope; at; at = at->around_) keep_allowed_by(at->guards_);
  }

  bool refute(Guard::Relation relation, const Dim& a, const Dim& b) const {
    for (size_t i = 0; i < 2; i++)
      if (is_allowed_[i] && holds_at(i, relation, a, b) == false) return true;
    return false;
  }

 private:
  void keep_allowed_by(const std::vector<Guard>& guards) {
    constexpr size_t kMost = 8;  // more of them hardly ever hold at a corner
    for (bool& is_allowed : is_allowed_) is_allowed &= guards.size() <= kMost;
    for (const Guard& guard : guards)
      for (size_t i = 0; i < 2; i++)
        is_allowed_[i] = is_allowed_[i] && holds_at(i, guard.relation, guard.a, guard.b) == true;
  }

  // nullopt: sizes that are too large tell nothing.
  std::optional<bool> holds_at(size_t corner, Guard::Relation relation, const Dim& a, const Dim& b) const {
    auto x = value(a, corner), y = value(b, corner);
    return x && y ? std::optional(holds(relation, *x, *y)) : std::nullopt;
  }
  std::optional<int64_t> value(const Dim& dim, size_t corner) const {
    auto found = evaluate(dim, [&](std::string_view name) -> std::optional<int64_t> {
      Interval range = bounded(scope_.symbol_range(name));
      return corner == 0 ? range.lo : range.hi;
    });
    bool is_exact = found.ok() && std::abs(*found) < Interval::kUnbounded;
    return is_exact ? std::optional(*found) : std::nullopt;
  }

  const SizeScope& scope_;
  std::array<bool, 2> is_allowed_{true, true};
};

bool SizeScope::implies(Guard::Relation relation, const Dim& a, const Dim& b) const {
  Corners corners(*this);
  if (corners.refute(relation, a, b)) return false;
  if (proves(relation, a, b)) return true;
  // Either may have fewer terms. Dims as given count too, because guards are recorded about them.
  Dim x = resolved(a), y = resolved(b);
  if ((x != a || y != b) && proves(relation, x, y)) return true;
  x = reduced(a), y = reduced(b);
  return (x != a || y != b) && proves(relation, resolved(x), resolved(y));
}

// Ranges decide before guards. So what ranges prove alone has the same form whatever guards there are.
Dim SizeScope::resolved(const Dim& dim) const {
  if (dim.is_literal()) return dim;
  Corners corners(*this);
  return rewritten(dim, [&](Atom::Kind kind, const Dim& a, const Dim& b) -> std::optional<Dim> {
    if (kind != Atom::kMax && kind != Atom::kMin) return std::nullopt;
    auto decided = [&](bool b_is_larger) { return b_is_larger == (kind == Atom::kMax) ? b : a; };
    bool may_be_more = corners.refute(Guard::kLessEqual, a, b), may_be_less = corners.refute(Guard::kLessEqual, b, a);
    if (may_be_more && may_be_less) return std::nullopt;
    Interval difference = range(b - a);
    if (difference.lo >= 0 || difference.hi <= 0) return decided(difference.lo >= 0);
    // The operands are resolved already: resolving them again at each level would take exponential time.
    if (!may_be_more && is_at_most(a, b, kExtremes)) return decided(true);
    if (!may_be_less && is_at_most(b, a, kExtremes)) return decided(false);
    return std::nullopt;
  });
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
  if (known && (!guard.is_derived || guards_[*known].where == guard.where))
    guards_[*known].is_derived = guard.is_derived;
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

// Records the guard, unless it says nothing new.
Status SizeScope::record_alone(Guard guard) {
  Dim difference = guard.b - guard.a;
  RLX_TRY(check_parts(std::array{guard.a, guard.b}));
  if (difference.is(0)) return {};
  if (auto known = find_guard(guard.relation, difference); known && !guard.is_derived)
    guards_[*known].is_derived = false;
  if (has_guard(guard.relation, difference)) return {};
  auto index = static_cast<uint32_t>(guards_.size());
  guard_index_.emplace(guard_hash(guard.relation, difference), index);
  visit_extremes(difference, [&](const Dim& order) { undecided_.emplace(hash_of_either_sign(order), index); });
  guards_.push_back(std::move(guard));
  learn_range(guards_.back());
  return learn(index);
}

// ---- roll-back ----

void SizeScope::roll_back(const Mark& mark) {
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
  while (guards_.size() > mark.guards) {
    const Guard& guard = guards_.back();
    Dim difference = guard.b - guard.a;
    auto index = static_cast<uint32_t>(guards_.size() - 1);
    auto forget = [&](auto& by_hash, size_t hash) {
      auto [first, last] = by_hash.equal_range(hash);
      by_hash.erase(std::find_if(first, last, [&](const auto& entry) { return entry.second == index; }));
    };
    forget(guard_index_, guard_hash(guard.relation, difference));
    visit_extremes(difference, [&](const Dim& order) { forget(undecided_, hash_of_either_sign(order)); });
    guards_.pop_back();
  }
}

void SizeScope::remove_symbols(const std::set<std::string>& names) {
  if (std::erase_if(symbols_, [&](const auto& entry) { return names.contains(entry.first); }) == 0) return;
  symbol_index_.clear();
  for (uint32_t i = 0; i < symbols_.size(); i++) symbol_index_.emplace(symbols_[i].first, i);
  narrowed_.clear();
}

}  // namespace rlx
