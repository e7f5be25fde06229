// SPDX-License-Identifier: Apache-2.0
// Affine forms, the phases of nodes, and the table of facts found so far. The facts of single ops are in
// ops/facts.cpp.
#include "ir/facts.h"

#include <algorithm>

#include "base/inlined_vector.h"
#include "base/lasting.h"
#include "base/visit.h"
#include "ir/body.h"

namespace rlx {

// ---- affine forms ----

bool Affine::is_uniform() const {
  return std::all_of(steps.begin(), steps.end(), [](const Dim& step) { return step.is(0); });
}

Affine operator*(const Affine& a, const Dim& factor) {
  Affine product{a.offset * factor, {}};
  for (const Dim& step : a.steps) product.steps.push_back(step * factor);
  return product;
}

Affine operator+(const Affine& a, const Affine& b) {
  const Affine &longer = a.steps.size() < b.steps.size() ? b : a, &shorter = &longer == &a ? b : a;
  Affine sum{a.offset + b.offset, longer.steps};
  size_t lead = longer.steps.size() - shorter.steps.size();
  for (size_t i = 0; i < shorter.steps.size(); i++) sum.steps[lead + i] += shorter.steps[i];
  return sum;
}

Affine operator-(const Affine& a, const Affine& b) {
  return a + b * Dim(-1);
}

// Whether the arithmetic of dims has saturated, here or in an operand, so that the number may be wrong.
static bool is_saturated(const Dim& dim) {
  auto is_end = [](int64_t number) { return number >= Interval::kUnbounded || number <= -Interval::kUnbounded; };
  const Polynomial* polynomial = dim.polynomial();
  if (!polynomial) return is_end(dim.literal());
  return std::any_of(polynomial->terms.begin(), polynomial->terms.end(), [&](const Term& term) {
    return is_end(term.coefficient) || std::any_of(term.atoms.begin(), term.atoms.end(), [](const AtomPtr& atom) {
             return is_saturated(atom->a) || is_saturated(atom->b);
           });
  });
}

Interval bounds_of(const Graph& graph, const Affine& form, std::span<const Dim> dims) {
  constexpr Interval kAnything{-Interval::kUnbounded, Interval::kUnbounded};
  Dim lowest = form.offset, highest = form.offset;
  size_t lead = dims.size() - form.steps.size();
  for (size_t axis = 0; axis < form.steps.size(); axis++) {
    const Dim& step = form.steps[axis];
    if (step.is(0)) continue;
    Interval sign = graph.range(step);
    Dim reach = step * (dims[lead + axis] - Dim(1));
    if (sign.lo >= 0)
      highest += reach;
    else if (sign.hi <= 0)
      lowest += reach;
    else
      return kAnything;
  }
  if (std::any_of(form.steps.begin(), form.steps.end(), is_saturated) || is_saturated(lowest) || is_saturated(highest))
    return kAnything;
  return {graph.range(lowest).lo, graph.range(highest).hi};
}

// The range of the dtype, as far as an Interval can hold it: the ends of an Interval saturate.
static Interval limits_of(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  return visit<dtypes::I>(dtype, []<class T>() {
    using Limits = std::numeric_limits<T>;
    constexpr auto kMost = static_cast<uint64_t>(Interval::kUnbounded - 1);
    int64_t hi = static_cast<uint64_t>(Limits::max()) > kMost ? static_cast<int64_t>(kMost)
                                                              : static_cast<int64_t>(Limits::max());
    return Interval{std::is_signed_v<T> ? std::max(static_cast<int64_t>(Limits::min()), 1 - Interval::kUnbounded) : 0,
                    hi};
  });
}

static bool within(Interval range, Interval limits) {
  return range.lo >= limits.lo && range.hi <= limits.hi;
}

// A long formula helps nobody: that of a comparison of comparisons doubles in length with each op.
static bool is_long(const Dim& dim) {
  constexpr int64_t kMostParts = 128;
  return dim.parts() > kMostParts;
}

void FactArgs::set(Affine form) {
  if (!dtypes::X.has(type().dtype) && type().dtype != DType::kBool) return;
  if (is_long(form.offset) || std::any_of(form.steps.begin(), form.steps.end(), is_long)) return;
  for (size_t axis = 0; axis < form.steps.size(); axis++)
    if (type().dims[axis].is(1)) form.steps[axis] = 0;
  Interval range = bounds_of(graph, form, type().dims);
  if (!within(range, limits_of(type().dtype))) return;
  out.affine = std::make_shared<const Affine>(std::move(form));
  if (is_integer(type().dtype)) out.range = range;
}

void FactArgs::set(Interval range) {
  if (is_integer(type().dtype) && within(range, limits_of(type().dtype))) out.range = range;
}

// ---- phases ----

std::vector<BodyParam> body_params(const Node& node) {
  std::vector<BodyParam> found;
  if (!node.attrs.info()->has_bodies) return found;
  for (const Graph* body : bodies_of(node.attrs)) {
    for (uint32_t leaf : body->params()) found.push_back({body->leaf_name(leaf), body->node(leaf).out[0]});
    for (const Node& inner : body->nodes())
      for (BodyParam& param : body_params(inner)) found.push_back(std::move(param));
  }
  std::stable_sort(found.begin(), found.end(), [](const BodyParam& a, const BodyParam& b) { return a.name < b.name; });
  auto is_same = [](const BodyParam& a, const BodyParam& b) { return a.name == b.name && a.type == b.type; };
  found.erase(std::unique(found.begin(), found.end(), is_same), found.end());
  return found;
}

static bool is_size_free(const Node& node);

static bool is_literal(const AttrValue& value) {
  if (auto* dim = std::get_if<Dim>(&value)) return dim->is_literal();
  if (auto* dims = std::get_if<std::vector<Dim>>(&value)) return all_literal(*dims);
  if (auto* graph = std::get_if<std::shared_ptr<const Graph>>(&value); graph && *graph)
    return std::all_of((*graph)->nodes().begin(), (*graph)->nodes().end(), is_size_free) &&
           std::all_of((*graph)->guards().begin(), (*graph)->guards().end(),
                       [](const Guard& guard) { return guard.a.is_literal() && guard.b.is_literal(); });
  return true;
}

// Whether the node computes the same at all sizes: its attributes and outputs are literal, and it reads no sizes.
static bool is_size_free(const Node& node) {
  if (node.attrs.info()->is(kOfSizes)) return false;
  return std::all_of(node.out.begin(), node.out.end(), [](const ValueType& type) { return all_literal(type.dims); }) &&
         std::all_of(node.attrs.values().begin(), node.attrs.values().end(), is_literal);
}

// Only a run can be cancelled. So loops of more trips than this, those of loops in their bodies included, belong to the
// run even where they read constants and params alone.
static constexpr double kMostPreparedTrips = 1 << 16;

static double trips_of(const Graph& graph, const Node& node) {
  const OpInfo& info = graph.info(node);
  if (!info.has_bodies) return 0;
  double inside = 1;
  for (const Graph* body : bodies_of(node.attrs))
    if (body->has_bodies())
      for (const Node& it : body->nodes()) inside += trips_of(*body, it);
  double trips = info.trips ? info.trips(graph, node) : 1;
  return trips > 0 ? trips * inside : 0;
}

Phase Facts::phase_of(const Node& node) const {
  const OpInfo& info = graph_.info(node);
  auto varies = [&](Value value) { return present(value) && phases_[value.node] == Phase::kRun; };
  if (!info.is(kOfSizes) && std::any_of(node.in.begin(), node.in.end(), varies)) return Phase::kRun;
  if (info.is(kVaries) || !is_pure(info, node.attrs)) return Phase::kRun;
  if (info.is(kLeaf)) return Phase::kResident;
  if (graph_.is_prologue()) return Phase::kRun;
  if (info.has_bodies && !body_params(node).empty()) return Phase::kRun;
  if (trips_of(graph_, node) > kMostPreparedTrips) return Phase::kRun;
  Phase phase = is_size_free(node) ? Phase::kResident : Phase::kSized;
  if (phase == Phase::kSized && !fresh_.empty()) {
    auto decide = [&](const std::string& symbol) { phase = fresh_.contains(symbol) ? Phase::kRun : phase; };
    visit_symbols(node, decide);
    if (info.is(kOfSizes)) visit_symbols(graph_.node(node.in[0]), decide);
  }
  if (info.is(kOfSizes)) return phase;
  for (Value value : node.in)
    if (present(value)) phase = std::max(phase, phases_[value.node]);
  return phase;
}

// ---- the table ----

static const ValueFacts& nothing() {
  static const ValueFacts& facts = lasting([] { return ValueFacts(); });
  return facts;
}

static bool is_something(const ValueFacts& facts) {
  return facts.splat || facts.affine || facts.range;
}

Facts::Facts(const Graph& graph, Asked asked) : graph_(graph), asked_(asked) {
  if (asked == Asked::kAll) extend();
}

void Facts::extend() {
  size_t count = graph_.nodes().size();
  for (size_t index = phases_.size(); index < count; index++) {
    const Node& node = graph_.nodes()[index];
    const OpInfo& info = graph_.info(node);
    if (info.decides_sizes)
      visit_decided_sizes(node, [&](const std::string& symbol, bool is_fresh) {
        if (is_fresh) fresh_.insert(symbol);
      });
    phases_.push_back(phase_of(node));
    bool reads = info.is(kInterface) && !info.is(kVaries);
    if (!info.is(kOfSizes))
      for (Value value : node.in) reads |= present(value) && reads_params_[value.node];
    reads_params_.push_back(reads);
  }
  known_.resize(count);
}

void Facts::shorten(size_t nodes) {
  phases_.resize(nodes);
  reads_params_.resize(nodes);
  known_.resize(nodes);
}

bool Facts::knows_more(Value value) {
  return is_something(of(value));
}

bool Facts::find_again(uint32_t index) {
  const Node& node = graph_.node(index);
  Phase before = phases_[index];
  phases_[index] = phase_of(node);
  bool was_known = known_[index] && knows_more({index, 0});
  bool may_change = known_[index] && !was_known && graph_.info(node).facts;
  if (may_change) known_[index] = nullptr;
  return phases_[index] < before || (may_change && knows_more({index, 0}));
}

// Visits inputs first, without recursion. A value that is known already is not visited again.
const ValueFacts& Facts::of(Value value) {
  if (!present(value) || value.output != 0) return nothing();
  if (const ValueFacts* facts = known(value.node)) return *facts;
  InlinedVector<uint32_t, 8> waiting{value.node};
  while (!waiting.empty()) {
    uint32_t node = waiting.back();
    size_t count = waiting.size();
    bool goes_on = asked_ == Asked::kAll || asked_for_.size() < kMostAsked;
    if (goes_on && !known(node) && graph_.info(graph_.node(node)).facts)
      for (Value in : graph_.node(node).in)
        if (present(in) && !known(in.node)) waiting.push_back(in.node);
    if (waiting.size() > count) continue;
    if (!known(node)) find(node);
    waiting.truncate(waiting.size() - 1);
  }
  return *known(value.node);
}

void Facts::find(uint32_t index) {
  const Node& node = graph_.node(index);
  known(index) = &nothing();
  FactFn facts = graph_.info(node).facts;
  if (!facts) return;
  InlinedVector<const ValueFacts*, 4> in;
  for (Value value : node.in) {
    const ValueFacts* facts = present(value) && value.output == 0 ? known(value.node) : nullptr;
    in.push_back(present(value) && !facts ? &nothing() : facts);
  }
  ValueFacts found;
  FactArgs args{graph_, node, in, found};
  facts(args);
  if (!is_something(found)) return;
  found_.push_back(std::move(found));
  known(index) = &found_.back();
}

}  // namespace rlx
