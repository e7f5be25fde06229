// SPDX-License-Identifier: Apache-2.0
#include "meaning.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "edit.h"
#include "exceptions.h"
#include "noise.h"
#include "open_values.h"
#include "tests/support/tolerance.h"
#include "tests/support/transforms.h"

namespace rlx::test {

namespace {

bool is_real(DType dtype) {
  return is_float(dtype) || dtypes::E.has(dtype);
}

c128 element(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kC64) return c128(tensor.as<c64>()[i]);
  if (tensor.dtype() == DType::kC128) return tensor.as<c128>()[i];
  return element_as_f64(tensor, i);
}

bool is_nan(c128 value) {
  return std::isnan(value.real()) || std::isnan(value.imag());
}

bool is_finite(c128 value) {
  return std::isfinite(value.real()) && std::isfinite(value.imag());
}

// Whether sums of products of such numbers may be beyond f64, in which the oracle computes: then the order of the terms
// decides what becomes of them (semantics.md C).
bool holds_huge_numbers(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF64 && tensor.dtype() != DType::kC128) return false;
  for (int64_t i = 0; i < tensor.count(); i++)
    if (double size = std::abs(element(tensor, i)); std::isfinite(size) && size > 0x1p500) return true;
  return false;
}

// As they are written, except that any NaN is any NaN.
bool same_element(const Tensor& a, const Tensor& b, int64_t i) {
  auto unit = static_cast<size_t>(element_bytes(a.dtype())), at = static_cast<size_t>(i) * unit;
  if (std::equal(a.data() + at, a.data() + at + unit, b.data() + at)) return true;
  return (is_real(a.dtype()) || is_complex(a.dtype())) && is_nan(element(a, i)) && is_nan(element(b, i));
}

// Whether `value` is what becomes of a number near `exact` that this dtype cannot hold.
bool overflows(DType dtype, c128 value, c128 exact, double allowed) {
  if (!is_real(dtype) || !std::isinf(value.real()) || !is_finite(exact)) return false;
  return round_to(dtype, exact.real() + std::copysign(allowed, value.real())) == value.real();
}

// Whether `value` is what a device with this error may compute where the result is `exact`, as numbers of this dtype.
bool is_near(DType dtype, c128 value, c128 exact, double allowed) {
  if (overflows(dtype, value, exact, allowed)) return true;
  if (is_nan(exact)) return is_nan(value);
  if (value == exact || (!is_finite(exact) && is_complex(dtype))) return true;
  return is_finite(value) && is_finite(exact) && std::abs(value - exact) <= allowed;
}

bool same_dims(const Tensor& a, const Tensor& b) {
  return std::equal(a.dims().begin(), a.dims().end(), b.dims().begin(), b.dims().end());
}

// Whether each axis of a result is within those of the runs: where they differ, rounding decides how many elements
// there are.
bool is_within_dims(const Tensor& got, const std::vector<Results>& runs, size_t output) {
  if (got.rank() != runs[0][output].rank()) return false;
  for (size_t axis = 0; axis < got.rank(); axis++) {
    auto by_size = [&](const Results& a, const Results& b) { return a[output].dims()[axis] < b[output].dims()[axis]; };
    auto [least, most] = std::minmax_element(runs.begin(), runs.end(), by_size);
    int64_t size = got.dims()[axis];
    if (size < (*least)[output].dims()[axis] || size > (*most)[output].dims()[axis]) return false;
  }
  return true;
}

std::string text(c128 value) {
  return value.imag() == 0 ? format("{:.9}", value.real()) : format("({:.9}, {:.9})", value.real(), value.imag());
}

std::string failed_at(size_t output, int64_t i, c128 got, c128 oracle, c128 typed) {
  return format("output {} differs at element {}: it is {}, not {} ({} in its dtype)", output, i, text(got),
                text(oracle), text(typed));
}

std::string of_another_type(size_t output, const Tensor& got, const Tensor& want) {
  return format("output {} is {}, not {}", output, type_text(got.dtype(), got.dims()),
                type_text(want.dtype(), want.dims()));
}

// A size that no input gives, or that both an input and contents give. A run may not reach what names it, or may find
// the two equal, but no plan can be made.
std::optional<std::string> open_size(const RandomGraph& random, const SymbolSizes& bound) {
  for (const DecidedSize& size : decided_sizes(random.graph))
    if (size.is_fresh && bound.contains(size.symbol)) return size.symbol;
  std::set<std::string> given, named;
  for (const auto& [symbol, size] : bound) given.insert(symbol);
  visit_nodes(random.graph, [&](const Graph&, const Node& node) {
    visit_symbols(node, [&](const std::string& symbol) { (node.op == Op::kInput ? given : named).insert(symbol); });
    visit_decided_sizes(node, [&](const std::string& symbol, bool) { given.insert(symbol); });
  });
  for (const std::string& symbol : named)
    if (!given.contains(symbol)) return symbol;
  return std::nullopt;
}

// The bodies of each node as `edit` makes them.
Result<Graph> with_edited_bodies(const Graph& graph, const BodyEdit& edit) {
  auto copy = [&](Graph& to, uint32_t index, const Values& in) -> Result<Values> {
    return copy_node(graph, index, in, to, RLX_TRY(with_bodies(graph.node(index), edit)));
  };
  return edited(graph, copy, Leaves::kAll, Guards::kKept);
}

// What a composite means may have a body, as the recurrent layers do; so bodies come last.
Result<Graph> with_primitives_only(Graph graph) {
  auto is_composite = [&](const Node& node) { return !graph.info(node).is(kLeaf) && !graph.info(node).primitive(); };
  while (std::any_of(graph.nodes().begin(), graph.nodes().end(), is_composite))
    graph = RLX_TRY(find_transform("decompose")->run(graph));
  return with_edited_bodies(graph, with_primitives_only);
}

// Whether the graph, or the decomposition of a composite in it, contains attention.
bool means_attention(Graph graph) {
  auto has = [&](auto holds) { return std::any_of(graph.nodes().begin(), graph.nodes().end(), holds); };
  while (!has([](const Node& node) { return node.op == Op::kAttention; })) {
    if (!has([&](const Node& node) { return !graph.info(node).is(kLeaf) && !graph.info(node).primitive(); }))
      return false;
    auto next = find_transform("decompose")->run(graph);
    if (!next.ok()) return false;
    graph = std::move(*next);
  }
  return true;
}

// Whether it makes infinite numbers finite.
bool bounds_numbers(const Node& node) {
  bool has_cap = node.op == Op::kAttention && node.attrs.f64("softcap") > 0;
  return has_cap || node.op == Op::kTanh || node.op == Op::kSigmoid || node.op == Op::kErf || node.op == Op::kClamp;
}

bool is_product(Op op) {
  return op == Op::kMatmul || op == Op::kConv || op == Op::kLinear || op == Op::kConvBiasAct;
}

}  // namespace

Result<Meaning> Meaning::of(const RandomGraph& random, size_t run) {
  Meaning meaning(random, run);
  SymbolSizes sizes = RLX_TRY(bind_sizes(random.graph, random.runs[run]));
  if (auto symbol = open_size(random, sizes)) return Status(Code::kShape, "no one source gives the size " + *symbol);
  if (!meaning.add_exact_runs().ok()) {
    meaning.bounds_ = Bounds::kClamp;
    RLX_TRY(meaning.add_exact_runs());
  }
  bool has_softmax = false;
  visit_nodes(random.graph, [&](const Graph& graph, const Node& node) {
    meaning.has_attention_ |= node.op == Op::kAttention;
    meaning.has_nan_guard_ |= guards_weights(graph, node);
    meaning.has_finite_fill_ |= is_finite_fill(node);
    meaning.has_huge_numbers_ |= node.op == Op::kConstant && holds_huge_numbers(node.attrs.tensor("value"));
    has_softmax |= node.op == Op::kSoftmax || node.op == Op::kExp;
    meaning.has_product_ |= is_product(node.op);
    meaning.has_batch_norm_ |= node.op == Op::kBatchNorm;
    meaning.bounds_numbers_ |= bounds_numbers(node);
    meaning.steps_ = std::max(meaning.steps_, tolerance_of(graph.info(node).tol).steps);
    for (const ValueType& type : node.out) meaning.epsilon_ = std::max(meaning.epsilon_, epsilon_of(type.dtype));
  });
  meaning.has_attention_ |= has_softmax && meaning.has_product_;
  for (const Tensor& tensor : meaning.inputs()) meaning.has_huge_numbers_ |= holds_huge_numbers(tensor);
  for (const auto& [name, tensor] : random.params) meaning.has_huge_numbers_ |= holds_huge_numbers(tensor);
  meaning.find_bits_of_numbers();
  return meaning;
}

// Numbers that are near each other may have very different bits.
void Meaning::find_bits_of_numbers() {
  const Graph& graph = random_.graph;
  auto is_computed = [&](Value value) {
    DType dtype = graph.type(value).dtype;
    return !graph.info(graph.node(value)).is(kLeaf) && (is_real(dtype) || is_complex(dtype));
  };
  auto has_inner_bitcast = [](const Node& node) {
    bool found = false;
    for (const AttrValue& value : node.attrs.values())
      if (auto* body = std::get_if<std::shared_ptr<const Graph>>(&value); body && *body)
        visit_nodes(**body, [&](const Graph&, const Node& inner) { found |= inner.op == Op::kBitcast; });
    return found;
  };
  std::vector<bool> shows(graph.nodes().size());
  for (uint32_t i = 0; i < shows.size(); i++) {
    if (has_inner_bitcast(graph.node(i))) shows[i] = true;
    for (Value value : graph.node(i).in)
      if (present(value) && (shows[value.node] || (graph.node(i).op == Op::kBitcast && is_computed(value))))
        shows[i] = true;
  }
  for (const GraphOutput& output : graph.outputs()) shows_bits_.push_back(shows[output.value.node]);
}

Status Meaning::add_exact_runs() {
  runs_.clear();
  for (EvalMode mode : {EvalMode::kOracle, EvalMode::kTyped})
    runs_.push_back(RLX_TRY(interpret(random_.graph, inputs(), random_.params, {mode, bounds_})));
  return {};
}

// The results of the oracle for another graph with the same outputs. If it does not run, each output runs by itself;
// one that still does not run keeps its result.
Result<Results> Meaning::run_apart(const Graph& graph) const {
  EvalOptions options{EvalMode::kOracle, Bounds::kClamp};
  if (auto all = interpret(graph, inputs(), random_.params, options); all.ok()) return all;
  Results results = runs_[0];
  for (size_t i = 0; i < results.size(); i++) {
    Graph alone = RLX_TRY(with_outputs(graph, {graph.outputs()[i]}, Leaves::kAll, Guards::kKept));
    auto result = interpret(alone, inputs(), random_.params, options);
    if (result.ok()) results[i] = (*result)[0];
  }
  return results;
}

// Noise may move an index that was computed, so these clamp. It may part values that `unique` finds equal: if a guard
// on their number then fails, what decides sizes has none.
Status Meaning::add_noisy_runs() {
  Random random(1);
  Graph primitives = RLX_TRY(with_primitives_only(random_.graph));
  // A product of small numbers may fall below the normal ones inside an op, of which only the sum is seen here.
  for (double least : {kLeastNormal, 0x1p-100}) {
    Graph normal = RLX_TRY(with_flushed(primitives, least));
    runs_.push_back(RLX_TRY(run_apart(normal)));
  }
  // One reader of a value may have them, another may not.
  for (const Graph& form : RLX_TRY(with_one_read_flushed(primitives))) runs_.push_back(RLX_TRY(run_apart(form)));
  auto noisy_run = [&](Noise noise) -> Result<Results> {
    Graph noisy = RLX_TRY(with_noise(primitives, noise, random));
    return interpret(noisy, inputs(), random_.params, {EvalMode::kOracle, Bounds::kClamp});
  };
  for (int i = 0; i < 40; i++) {
    Noise noise = {.rounds = i >= 10, .keeps_sizes = false, .flushes = i % 2 ? 50 : 10};
    auto results = noisy_run(noise);
    noise.keeps_sizes = true;
    if (!results.ok()) results = run_apart(RLX_TRY(with_noise(primitives, noise, random)));
    runs_.push_back(RLX_TRY(std::move(results)));
  }
  return {};
}

// Attention takes the place of weights that are guarded against NaN, and does without the guard; a low number that is
// added to scores, or stands in their place, is a mask; and a factor of a product moves into an operand.
void Meaning::add_exceptions() {
  if (!has_attention_ && !has_product_ && !has_batch_norm_) return;
  using enum Masks;
  static constexpr Exceptions kMade[] = {
      {kAsWritten, true, false}, {kAsWritten, false, true}, {kAsWritten, true, true}, {kLowest, false, false},
      {kLowest, true, false},    {kAllEqual, false, false}, {kAllEqual, true, false}};
  for (Exceptions made : kMade) {
    if (made.drops_guards && !has_nan_guard_) continue;
    if (made.masks == kAllEqual && !has_finite_fill_) continue;
    auto graph = with_exceptions(random_.graph, made);
    if (!graph.ok()) continue;
    auto add = [&](const Result<Graph>& meant) {
      if (!meant.ok()) return;
      for (EvalMode mode : {EvalMode::kOracle, EvalMode::kTyped})
        if (auto results = interpret(*meant, inputs(), random_.params, {mode, bounds_}); results.ok())
          exceptions_.push_back({std::move(*results), made.moves_factors});
    };
    add(graph);
    auto primitives = with_primitives_only(*graph);
    if (!primitives.ok()) continue;
    add(without_subnormals(*primitives));
    // What such a mask forbids is not read, though the formula of the product is NaN there.
    if (made.masks != kAsWritten)
      for (double unread : {0.0, 1.0, -1.0}) add(with_open_values(*primitives, unread));
  }
}

std::optional<std::pair<Graph, Results>> Meaning::values_inside() const {
  auto primitives = with_primitives_only(random_.graph);
  if (!primitives.ok()) return std::nullopt;
  std::vector<GraphOutput> outputs;
  for (uint32_t i = 0; i < primitives->nodes().size(); i++)
    if (is_real(primitives->node(i).out[0].dtype)) outputs.push_back({std::to_string(i), {i, 0}});
  auto graph = with_outputs(*primitives, outputs, Leaves::kAll, Guards::kKept);
  if (!graph.ok()) return std::nullopt;
  auto values = interpret(*graph, inputs(), random_.params, {EvalMode::kOracle, bounds_});
  if (!values.ok()) return std::nullopt;
  return std::pair(std::move(*graph), std::move(*values));
}

bool Meaning::runs_without_subnormals() const {
  auto primitives = with_primitives_only(random_.graph);
  auto graph = primitives.ok() ? without_subnormals(*primitives) : std::move(primitives);
  return graph.ok() && interpret(*graph, inputs(), random_.params, {EvalMode::kOracle, bounds_}).ok();
}

bool Meaning::is_tame() const {
  auto inside = values_inside();
  if (!inside) return false;
  return std::all_of(inside->second.begin(), inside->second.end(), [](const Tensor& tensor) {
    for (int64_t i = 0; i < tensor.count(); i++) {
      double value = element(tensor, i).real();
      if (!std::isfinite(value) || (value == 0 && std::signbit(value))) return false;
    }
    return true;
  });
}

// The results of the graph as it is, and with each stand-in for what may be anything. Where the graph does not run with
// a stand-in, there are none.
void Meaning::add_open_values() {
  auto add = [&](const Result<Graph>& graph) {
    auto results = graph.ok() ? interpret(*graph, inputs(), random_.params, {EvalMode::kOracle, Bounds::kClamp})
                              : Result<Results>(graph.status());
    by_stand_in_.push_back(results.ok() ? std::move(*results) : Results());
  };
  auto primitives = with_primitives_only(random_.graph);
  add(primitives);
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  for (double stand_in : {double{NAN}, kInfinite, -kInfinite, 0.0, 1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 5.0, -5.0})
    add(primitives.ok() ? with_open_values(*primitives, stand_in) : Result<Graph>(primitives.status()));
}

std::string Meaning::difference(const Results& got) {
  std::string wrong = difference_now(got);
  if (wrong.empty() || runs_.size() > 2) return wrong;
  has_attention_ = has_attention_ || means_attention(random_.graph);
  decides_by_overflow_ = has_huge_numbers_ && !is_tame();
  add_open_values();
  add_exceptions();
  if (Status status = add_noisy_runs(); !status.ok()) return wrong + "; " + std::string(status.message());
  return difference_now(got);
}

std::string Meaning::difference_now(const Results& got) const {
  if (got.size() != runs_[0].size()) return "another number of outputs";
  for (size_t output = 0; output < got.size(); output++)
    if (std::string wrong = difference(output, got[output]); !wrong.empty()) return wrong;
  return "";
}

std::string Meaning::difference_in_bits(const Results& got) const {
  const Results& typed = runs_[1];
  if (got.size() != typed.size()) return "another number of outputs";
  for (size_t k = 0; k < got.size(); k++) {
    const Tensor& want = typed[k];
    if (got[k].dtype() != want.dtype() || !same_dims(got[k], want)) return of_another_type(k, got[k], want);
    for (int64_t i = 0; i < want.count(); i++)
      if (!same_element(got[k], want, i))
        return failed_at(k, i, element(got[k], i), element(want, i), element(want, i));
  }
  return "";
}

bool Meaning::depends_on_open_values(size_t output, int64_t i) const {
  return std::any_of(by_stand_in_.begin(), by_stand_in_.end(),
                     [&](const Results& run) { return !same_element(run[output], by_stand_in_[0][output], i); });
}

// Whether nothing can be asked of this element. It may depend on a value that may be anything. Or rounding may decide
// whether it overflows, or whether it is a number at all. Attention may also give NaN by its definition, from a key
// that a query does not use (semantics.md A5); a mask that is added keeps such a NaN, and a mask that chooses drops it.
bool Meaning::is_open(size_t output, int64_t i) const {
  c128 exact = element(runs_[0][output], i);
  if (decides_by_overflow_ && epsilon_of(runs_[0][output].dtype()) == 0) return true;
  if ((has_attention_ && is_nan(exact)) || (has_huge_numbers_ && !is_finite(exact))) return true;
  if (depends_on_open_values(output, i)) return true;
  return std::any_of(runs_.begin() + 1, runs_.end(), [&](const Results& run) {
    c128 other = element(run[output], i);
    if (is_finite(exact) != is_finite(other) || is_nan(exact) != is_nan(other)) return true;
    return !is_finite(exact) && !is_nan(exact) && exact != other;
  });
}

// Whether nothing can be asked of the output: it shows the bits of numbers, or the runs disagree on how many elements
// there are, or what may be anything decides that.
bool Meaning::is_left_out(size_t output, const Tensor& got) const {
  auto has_its_dims = [&](const Results& run) { return !run.empty() && same_dims(run[output], got); };
  return shows_bits_[output] || !std::all_of(runs_.begin(), runs_.end(), has_its_dims) ||
         !std::all_of(by_stand_in_.begin(), by_stand_in_.end(), has_its_dims);
}

// The error may be a multiple of the distance between the runs, or of one rounding at the largest number.
Meaning::Margin Meaning::margin(size_t output) const {
  const Tensor& oracle = runs_[0][output];
  Margin margin;
  for (int64_t i = 0; i < oracle.count(); i++) {
    c128 exact = element(oracle, i);
    if (!is_finite(exact) || depends_on_open_values(output, i)) continue;
    margin.largest = std::max(margin.largest, std::abs(exact));
    for (const Results& run : runs_)
      if (c128 other = element(run[output], i); is_finite(other))
        margin.apart = std::max(margin.apart, std::abs(exact - other));
  }
  DType dtype = runs_[1][output].dtype();
  margin.is_exact = !is_real(dtype) && !is_complex(dtype);
  margin.rounding = std::max(1e-12, 32 * epsilon_);
  margin.most = margin.is_exact ? static_cast<double>(steps_) : 32 * margin.apart + margin.rounding * margin.largest;
  // While it is not known yet what may be anything, such values do not excuse others.
  if (by_stand_in_.empty() && !margin.is_exact) margin.most = std::min(margin.most, 64 * margin.rounding);
  return margin;
}

// Whether the element is what a close rule may make of it.
bool Meaning::is_excepted(size_t output, int64_t i, const Tensor& got, const Margin& margin) const {
  DType dtype = runs_[1][output].dtype();
  c128 exact = element(runs_[0][output], i);
  return std::any_of(exceptions_.begin(), exceptions_.end(), [&](const Exception& exception) {
    const Tensor& run = exception.results[output];
    if (!same_dims(run, got)) return false;
    c128 other = element(run, i);
    bool overflows = exception.moves_factors && is_nan(other) && !is_nan(exact);
    if (overflows && (bounds_numbers_ || !is_finite(element(got, i)))) return true;
    bool is_larger = !margin.is_exact && is_finite(other) && std::abs(other) > margin.largest;
    double most = is_larger ? margin.most + margin.rounding * std::abs(other) : margin.most;
    return is_near(dtype, element(got, i), other, most);
  });
}

// Where runs disagree on integers (from a comparison, or from rounding to whole numbers), the output is not looked at.
std::string Meaning::difference(size_t output, const Tensor& got) const {
  const Tensor &oracle = runs_[0][output], &typed = runs_[1][output];
  auto has_its_size = [&](const Exception& exception) { return same_dims(exception.results[output], got); };
  if (!same_dims(oracle, got) && std::any_of(exceptions_.begin(), exceptions_.end(), has_its_size)) return "";
  if (got.dtype() != oracle.dtype() && got.dtype() != typed.dtype()) return of_another_type(output, got, typed);
  // Where numbers below the normal ones decide a size, a device may find another one. At that size the interpreter may
  // fail in a value that no output needs.
  if (!is_within_dims(got, runs_, output)) return runs_without_subnormals() ? of_another_type(output, got, typed) : "";
  if (is_left_out(output, got)) return "";
  Margin allowed = margin(output);
  if (allowed.is_exact && allowed.apart > 0) return "";
  for (int64_t i = 0; i < oracle.count(); i++) {
    c128 value = element(got, i), exact = element(oracle, i);
    if (is_open(output, i) || is_near(typed.dtype(), value, exact, allowed.most)) continue;
    if (!is_excepted(output, i, got, allowed)) return failed_at(output, i, value, exact, element(typed, i));
  }
  return "";
}

}  // namespace rlx::test
