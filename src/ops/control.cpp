// SPDX-License-Identifier: Apache-2.0
// Control flow. A body reads only its inputs (semantics.md B1). Its symbols are those of the graph around it,
// except those that its own nodes decide, and those of its carries. Outside, both become fresh symbols.
#include "ops/control.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <set>
#include <unordered_map>

#include "ir/body.h"
#include "ir/facts.h"
#include "ir/symbols.h"
#include "ops/index.h"

namespace rlx {

// ---- symbols ----

static bool mentions(const Dim& dim, const Symbols& symbols) {
  bool found = false;
  visit_symbols(dim, [&](const std::string& symbol) { found |= symbols.contains(symbol); });
  return found;
}

// Those that nodes of the graph decide.
static Symbols decided_in(const Graph& graph) {
  std::vector<std::string> decided = decided_symbols(graph);
  return {decided.begin(), decided.end()};
}

// ---- inference: a body against its operands ----

// The symbols of carries: those that alone form a dim of a carry.
static std::set<std::string> sizes_of_carries(const Graph& body, size_t carries) {
  std::set<std::string> sizes;
  for (size_t i = 0; i < std::min(carries, body.inputs().size()); i++)
    for (const Dim& dim : body.node(body.inputs()[i]).out[0].dims)
      if (dim.symbol_name()) sizes.insert(*dim.symbol_name());
  for (const std::string& own : decided_symbols(body)) sizes.erase(own);
  return sizes;
}

// The symbols of carries that no graph around declares. The node stores their names, so that a symbol of the same name
// that is declared later is another one.
static Result<Symbols> store_carried(InferArgs& args, size_t carries, std::initializer_list<const char*> bodies) {
  std::set<std::string> possible, carried;
  for (const char* attr : bodies) possible.merge(sizes_of_carries(*args.attrs.graph(attr), carries));
  for (const std::string& symbol : carried_symbols(args.attrs)) {
    if (!possible.contains(symbol))
      return args.fail(Code::kOption, "'carried' names '" + symbol + "', which is not the size of a carry");
    carried.insert(symbol);
  }
  for (const std::string& symbol : possible)
    if (!args.graph.has_symbol(symbol)) carried.insert(symbol);
  if (!carried.empty())
    args.attrs = args.attrs.with("carried", std::vector<std::string>(carried.begin(), carried.end()));
  return Symbols(carried.begin(), carried.end());
}

static bool is_carried(const Dim& dim, const Symbols& carried) {
  return dim.symbol_name() && carried.contains(*dim.symbol_name());
}

// Checks the symbols that the body uses. Those in `carried` come with an input of this graph.
static Status check_symbols(InferArgs& args, const std::string& name, const Graph& graph, const Symbols& carried) {
  Symbols own = decided_in(graph);
  std::set<std::string> used, given = sizes_of_carries(graph, graph.inputs().size());
  std::ranges::copy_if(carried, std::inserter(own, own.end()), [&](auto& it) { return given.contains(it); });
  visit_symbols(graph, [&](const std::string& symbol) { used.insert(symbol); });
  for (const auto& [symbol, range] : graph.symbols()) {
    if (own.contains(symbol) || !used.contains(symbol)) continue;
    if (!args.graph.has_symbol(symbol) || carried.contains(symbol))
      return args.fail(Code::kShape, name + ": the size '" + symbol + "' is not known in the graph around it");
    // Proofs inside the body rely on the ranges there, so the ranges around it must lie within them.
    RLX_TRY(args.require_le(range.lo, Dim::symbol(symbol), name));
    if (range.hi < Interval::kUnbounded) RLX_TRY(args.require_le(Dim::symbol(symbol), range.hi, name));
  }
  return {};
}

// Dims of `formal` that are symbols of carries are not compared: they have no meaning outside the loop.
Status check_type(InferArgs& args, const std::string& what, const ValueType& expected, const ValueType& got,
                  const ValueType& formal, const Symbols& carried) {
  if (expected.dtype != got.dtype || expected.rank() != got.rank())
    return args
        .fail(got.dtype == expected.dtype ? Code::kShape : Code::kDtype,
              what + " is " + text_of(got) + ", not " + text_of(expected))
        .with("expected", text_of(expected))
        .with("got", text_of(got));
  for (size_t i = 0; i < got.rank(); i++) {
    if (i < formal.rank() && is_carried(formal.dims[i], carried)) continue;
    if (mentions(got.dims[i], carried))
      return args.fail(Code::kShape,
                       format("{}, axis {}: {} follows from a size that a carry brings", what, i, got.dims[i]));
    RLX_TRY(args.same(expected.dims[i], got.dims[i], format("{}, axis {}", what, i)));
  }
  return {};
}

Status check_inputs(InferArgs& args, const char* attr, std::span<const ValueType> given, const Symbols& carried) {
  const Graph& graph = *args.attrs.graph(attr);
  std::string name = "'" + std::string(attr) + "'";
  if (graph.inputs().size() != given.size())
    return args.fail(Code::kInvalidArgument,
                     format("{} takes {}, not {}", name, plural(graph.inputs().size(), "input"), given.size()));
  RLX_TRY(check_symbols(args, name, graph, carried));
  for (size_t i = 0; i < given.size(); i++) {
    const ValueType& formal = graph.node(graph.inputs()[i]).out[0];
    RLX_TRY(check_type(args, name + ", input '" + graph.leaf_name(graph.inputs()[i]) + "'", given[i], formal, formal,
                       carried));
  }
  return {};
}

Status check_output_count(InferArgs& args, const char* attr, size_t expected) {
  size_t got = args.attrs.graph(attr)->outputs().size();
  if (got == expected) return {};
  return args.fail(Code::kInvalidArgument, format("'{}' has {}, not {}", attr, plural(got, "output"), expected));
}

Result<std::vector<ValueType>> all_given(InferArgs& args, size_t first) {
  std::vector<ValueType> given;
  for (size_t i = first; i < args.in.size(); i++) {
    if (!args.in[i]) return args.fail(Code::kInvalidArgument, format("input {} may not be left out", i));
    given.push_back(*args.in[i]);
  }
  return given;
}

// The names of the symbols that a node decides. An attribute of the node keeps them, so that a copy of the node in
// another graph means the same sizes. `taken`: of all attributes of the node, as each name means one size.
class DecidedSymbols {
 public:
  DecidedSymbols(InferArgs& args, const char* attr, std::set<std::string>& taken)
      : args_(args), attr_(attr), taken_(taken) {
    if (args.attrs.has(attr)) given_ = args.attrs.strs(attr);
  }

  Result<Dim> next(Interval range) {
    if (given_.size() <= used_.size() && !given_.empty())
      return args_.fail(Code::kOption, format("'{}' names fewer sizes than the node decides", attr_));
    used_.push_back(given_.empty() ? fresh_symbol(args_.graph, args_.info.name) : given_[used_.size()]);
    if (!taken_.insert(used_.back()).second)
      return args_.fail(Code::kOption, format("'{}' names the size '{}' twice", attr_, used_.back()))
          .with("value", used_.back());
    RLX_TRY(args_.graph.declare_symbol(used_.back(), {std::max<int64_t>(0, range.lo), range.hi}));
    return Dim::symbol(used_.back());
  }

  // Stores the names that were used. A given one that no size needs is dropped.
  void keep() {
    if (used_.empty())
      args_.attrs = args_.attrs.with(attr_, {});
    else
      args_.attrs = args_.attrs.with(attr_, std::move(used_));
  }

 private:
  InferArgs& args_;
  const char* attr_;
  std::set<std::string>& taken_;
  std::vector<std::string> given_, used_;
};

// ---- if ----

// The sizes in which the branches of an `if` differ: a symbol for each pair of sizes. The symbol is fresh if contents
// decide one of the two sizes or the condition; else it is known as soon as the sizes around it are.
class JoinedSizes {
 public:
  JoinedSizes(InferArgs& args, const Graph& then, const Graph& otherwise, std::optional<Dim> when)
      : args_(args),
        then_(then),
        otherwise_(otherwise),
        when_(std::move(when)),
        own_then_(decided_in(then)),
        own_otherwise_(decided_in(otherwise)) {}

  Result<Dim> join(const Dim& a, const Dim& b) {
    bool is_own = mentions(a, own_then_) || mentions(b, own_otherwise_);
    if (!is_own && a == b) return a;
    if (auto known = joined_.find({a, b}); known != joined_.end()) return known->second;
    Interval x = then_.declared_range(a), y = otherwise_.declared_range(b);
    bool is_chosen = !is_own && when_ && !depends_on_run(*when_) && !depends_on_run(a) && !depends_on_run(b);
    DecidedSymbols& names = is_chosen ? chosen_ : in_run_;
    Dim joined = RLX_TRY(names.next({std::min(x.lo, y.lo), std::max(x.hi, y.hi)}));
    joined_.emplace(std::pair(a, b), joined);
    return joined;
  }

  void keep() {
    in_run_.keep();
    chosen_.keep();
  }

 private:
  bool depends_on_run(const Dim& dim) const {
    bool found = false;
    visit_symbols(dim, [&](const std::string& symbol) { found |= args_.graph.is_fresh(symbol); });
    return found;
  }

  struct HashOfPair {
    size_t operator()(const std::pair<Dim, Dim>& sizes) const {
      return hash_mix(sizes.first.hash(), sizes.second.hash());
    }
  };
  InferArgs& args_;
  const Graph &then_, &otherwise_;
  std::optional<Dim> when_;
  Symbols own_then_, own_otherwise_;
  std::unordered_map<std::pair<Dim, Dim>, Dim, HashOfPair> joined_;  // by the sizes in `then` and in `else`
  std::set<std::string> taken_;
  DecidedSymbols in_run_{args_, "symbols", taken_}, chosen_{args_, "chosen", taken_};
};

// The condition as a size, if it follows from sizes; the node stores it. A node whose condition was not known when its
// sizes got names keeps these, even where more is known by now: its users have them.
static std::optional<Dim> store_condition(InferArgs& args) {
  if (args.attrs.has("when")) return args.attrs.dim("when");
  if (args.attrs.has("symbols") && !args.attrs.has("chosen")) return std::nullopt;
  if (args.values[0].node >= args.graph.nodes().size()) return std::nullopt;  // verified apart from its graph
  Facts facts(args.graph, Facts::Asked::kValues);
  const Affine* form = facts.affine(args.values[0]);
  if (!form) return std::nullopt;
  Interval range = args.graph.range(form->offset);
  Dim when = range.lo == range.hi ? Dim(range.lo) : form->offset;
  args.attrs = args.attrs.with("when", when);
  return when;
}

static std::string why_unequal_ranks(const std::optional<Dim>& when) {
  if (!when) return ": data chooses between them, so their ranks must agree";
  return ": the sizes in '" + when->text() + "' choose between them; where these are fixed the ranks may differ";
}

Status infer_if(InferArgs& args) {
  if (args.rank() != 0) return wrong_rank("pred", "0", args.rank());
  std::vector<ValueType> given = RLX_TRY(all_given(args, 1));
  for (const char* branch : {"then", "else"}) RLX_TRY(check_inputs(args, branch, given));
  size_t outputs = args.attrs.graph("then")->outputs().size();
  if (outputs == 0) return args.fail(Code::kInvalidArgument, "'then' has no output");
  RLX_TRY(check_output_count(args, "else", outputs));
  std::optional<Dim> when = store_condition(args);
  // A branch that is never taken does not affect the types of the results.
  bool is_known = when && when->is_literal();
  std::shared_ptr<const Graph> then = args.attrs.graph(is_known && when->is(0) ? "else" : "then"),
                               otherwise = is_known ? then : args.attrs.graph("else");
  JoinedSizes sizes(args, *then, *otherwise, when);
  args.out.clear();
  for (size_t i = 0; i < outputs; i++) {
    const ValueType &a = then->type(then->outputs()[i].value), &b = otherwise->type(otherwise->outputs()[i].value);
    if (a.dtype != b.dtype || a.rank() != b.rank())
      return args
          .fail(a.dtype == b.dtype ? Code::kShape : Code::kDtype,
                format("output {} is {} in 'then' and {} in 'else'", i, a, b) +
                    (a.dtype == b.dtype ? why_unequal_ranks(when) : std::string()))
          .with("expected", text_of(a))
          .with("got", text_of(b));
    ValueType joined{a.dtype, {}};
    for (size_t axis = 0; axis < a.rank(); axis++)
      joined.dims.push_back(RLX_TRY(sizes.join(a.dims[axis], b.dims[axis])));
    args.out.push_back(std::move(joined));
  }
  sizes.keep();
  if (!when) store_condition(args);  // keep() may have dropped the names that stood in its way
  return {};
}

// ---- while, scan ----

// Whether the graph has guards, or may gain those of a body inside, once that is inlined.
static bool has_guards(const Graph& graph) {
  if (!graph.guards().empty()) return true;
  if (!graph.has_bodies()) return false;
  for (const Node& node : graph.nodes())
    for (const Graph* body : bodies_of(node.attrs))
      if (has_guards(*body)) return true;
  return false;
}

// The types of a loop's results, from the outputs of its body. Carries keep their sizes, except their own symbols,
// which become fresh ones. Stacked outputs gain a first axis of size `trips`.
class LoopTypes {
 public:
  // `length`: the number of trips, where sizes say it.
  LoopTypes(InferArgs& args, const Symbols& carried, std::optional<Dim> length = std::nullopt)
      : args_(args),
        given_(args.attrs.graph("body")),
        length_(std::move(length)),
        carried_(carried),
        varying_(decided_in(*given_)) {
    if (args.attrs.has("rows")) given_rows_ = args.attrs.dims("rows");
    varying_.insert(carried.begin(), carried.end());
  }

  // What one carry requires of the body counts for the sizes of all.
  Result<std::vector<ValueType>> carries(std::span<const ValueType> before) {
    for (size_t i = 0; i < before.size(); i++) RLX_TRY(as_before(i, before[i]).status());
    std::vector<ValueType> after;
    for (size_t i = 0; i < before.size(); i++) after.push_back(RLX_TRY(carry(i, before[i])));
    return after;
  }

  Result<ValueType> stacked(size_t i, const Dim& trips) {
    ValueType result = type(i);
    for (Dim& dim : result.dims) dim = RLX_TRY(row_size(i, dim));
    result.dims.insert(result.dims.begin(), trips);
    return result;
  }

  Result<Dim> unknown_trips(int64_t most) { return names_.next({0, most < 0 ? Interval::kUnbounded : most}); }
  // Stores what the node has decided.
  Status keep() {
    names_.keep();
    if (guarded_ && guarded_->guards().size() > given_->guards().size())
      args_.attrs = args_.attrs.with("body", std::make_shared<const Graph>(std::move(*guarded_)));
    if (given_rows_ && given_rows_->size() != rows_.size())
      return args_.fail(Code::kOption, format("'rows' lists {}, but the rows that the body stacks have {}",
                                              plural(given_rows_->size(), "size"), rows_.size()));
    if (!rows_.empty() && has_guards(*args_.attrs.graph("body")))
      args_.attrs = args_.attrs.with("rows", std::move(rows_));
    return {};
  }

 private:
  const Graph& body() const { return guarded_ ? *guarded_ : *given_; }
  const ValueType& type(size_t i) const { return body().type(body().outputs()[i].value); }
  const ValueType& formal(size_t i) const { return given_->node(given_->inputs()[i]).out[0]; }
  Result<ValueType> carry(size_t i, const ValueType& before) {
    ValueType got = RLX_TRY(as_before(i, before));
    RLX_TRY(check_type(args_, what(i) + " (a carry)", before, got, formal(i), carried_));
    ValueType after = before;
    for (size_t axis = 0; axis < formal(i).rank(); axis++) {
      if (!is_carried(formal(i).dims[axis], carried_)) {
        RLX_TRY(check_steady(i, got.dims[axis]));
        continue;
      }
      // No trip leaves the first size, which need not be in the range that the body declares.
      Interval first = args_.graph.declared_range(before.dims[axis]),
               last = body().declared_range(body().resolved(got.dims[axis]));
      after.dims[axis] = RLX_TRY(names_.next({std::min(first.lo, last.lo), std::max(first.hi, last.hi)}));
    }
    return after;
  }
  // The type with the sizes of `before`, where the guards of the body make them equal in every trip.
  Result<ValueType> as_before(size_t i, const ValueType& before) {
    ValueType got = type(i);
    for (size_t axis = 0; axis < std::min(got.rank(), before.rank()); axis++) {
      Dim& size = got.dims[axis];
      const Dim& first = before.dims[axis];
      if (size == first) continue;
      if (RLX_TRY(holds_in_body(i, first, formal(i).dims[axis], size))) size = first;
    }
    return got;
  }
  // The size of an axis of the rows. Without trips nothing asks for the guards of the body, and two forms that these
  // make equal are two sizes. So the node stores the form that counts.
  Result<Dim> row_size(size_t i, const Dim& in_body) {
    Dim size = body().resolved(in_body);
    RLX_TRY(check_steady(i, size));
    if (!given_rows_ || given_rows_->size() <= rows_.size()) {
      rows_.push_back(args_.graph.not_negative(size));
      return rows_.back();
    }
    const Dim& given = (*given_rows_)[rows_.size()];
    rows_.push_back(given);
    RLX_TRY(check_steady(i, given));
    if (given != size && !RLX_TRY(holds_in_body(i, given, given, size)))
      RLX_TRY(args_.same(given, size, what(i) + ": the size of a row"));
    return given;
  }
  // Whether `size` equals `outside` in every trip: by the guards that the body has, or by one that this adds. `formal`:
  // `outside` as the body writes it.
  Result<bool> holds_in_body(size_t i, const Dim& outside, const Dim& formal, const Dim& size) {
    return body().implies(Guard::kEqual, size, outside) || RLX_TRY(require_in_body(i, formal, size));
  }
  // Adds the guard `formal` = `size` to the body, and not to the graph around: a loop without trips need not meet it,
  // but every run checks a guard of the graph around. False where nothing is added: the size belongs to a carry, or the
  // graph around implies the guard. One that no sizes meet holds only if no trip is made.
  Result<bool> require_in_body(size_t i, const Dim& formal, const Dim& size) {
    if (is_carried(formal, carried_) || mentions(size, varying_)) return false;
    Guard asked{.relation = Guard::kEqual, .a = formal, .b = size, .where = args_.where(), .is_derived = true};
    if (args_.graph.implies(asked.relation, asked.a, asked.b)) return false;
    if (!may_hold(asked)) return length_ && args_.graph.implies(Guard::kEqual, 0, *length_);
    if (!guarded_) guarded_ = *given_;
    RLX_TRY(share_symbols(args_.graph, std::array{asked.a, asked.b}, *guarded_));
    Status refused = guarded_->add_guard(asked);
    if (refused.ok()) return true;
    if (!length_) return args_.fail(Code::kShape, format("{}: no trip ends: {}", what(i), refused.message()));
    RLX_TRY(args_.require(Guard::kEqual, 0, *length_));
    return true;
  }
  // Whether sizes of the graph around may meet the guard, which is not recorded.
  bool may_hold(const Guard& guard) {
    Graph::Mark before = args_.graph.mark();
    bool is_added = args_.graph.add_guard(guard).ok();
    args_.graph.roll_back(before);
    return is_added;
  }
  std::string what(size_t i) const { return "'body', output '" + body().outputs()[i].name + "'"; }
  Status check_steady(size_t i, const Dim& dim) const {
    if (!mentions(dim, varying_)) return {};
    return args_.fail(Code::kShape, what(i) + ": the size " + dim.text() +
                                        " depends on contents or on the trip, so it may differ from trip to trip");
  }

  InferArgs& args_;
  const std::shared_ptr<const Graph> given_;  // the body
  std::optional<Graph> guarded_;              // the body with the guards that it lacked
  const std::optional<Dim> length_;
  const Symbols& carried_;
  Symbols varying_;  // symbols that may differ from trip to trip
  std::optional<std::vector<Dim>> given_rows_;
  std::vector<Dim> rows_;  // the sizes of the rows, those of one stacked output after those of another
  std::set<std::string> taken_;
  DecidedSymbols names_{args_, "symbols", taken_};
};

static Status check_output_least(InferArgs& args, size_t least) {
  size_t got = args.attrs.graph("body")->outputs().size();
  if (got >= least) return {};
  return args.fail(Code::kInvalidArgument,
                   format("'body' has {}, not {} or more: its first outputs are the carries of the next trip",
                          plural(got, "output"), least));
}

// A size that a carry brings to the body is also one that it brings to the condition, which reads it after each trip.
static Status check_carried_by_both(InferArgs& args, size_t carries, const Symbols& carried) {
  const Graph &cond = *args.attrs.graph("cond"), &body = *args.attrs.graph("body");
  for (size_t i = 0; i < carries; i++) {
    const std::vector<Dim>&read = cond.node(cond.inputs()[i]).out[0].dims,
          &set = body.node(body.inputs()[i]).out[0].dims;
    for (size_t axis = 0; axis < set.size(); axis++)
      if (is_carried(set[axis], carried) && !is_carried(read[axis], carried))
        return args.fail(Code::kShape,
                         format("'cond', input '{}', axis {}: the size is {}, but each trip of 'body' may "
                                "change it, where it is '{}'",
                                cond.leaf_name(cond.inputs()[i]), axis, read[axis], set[axis]));
  }
  return {};
}

Status infer_while(InferArgs& args) {
  std::vector<ValueType> given = RLX_TRY(all_given(args, 0));
  auto carries = static_cast<size_t>(args.attrs.i64("n_carry"));
  if (carries > given.size())
    return args.fail(Code::kOption, format("n_carry is {}, but the node has {}: its first inputs are the carries",
                                           carries, plural(given.size(), "input")));
  Symbols carried = RLX_TRY(store_carried(args, carries, {"cond", "body"}));
  for (const char* attr : {"cond", "body"}) RLX_TRY(check_inputs(args, attr, given, carried));
  RLX_TRY(check_carried_by_both(args, carries, carried));
  RLX_TRY(check_output_count(args, "cond", 1));
  RLX_TRY(check_output_least(args, carries));
  const Graph& cond = *args.attrs.graph("cond");
  RLX_TRY(check_type(args, "'cond', output '" + cond.outputs()[0].name + "'", {DType::kBool, {}},
                     cond.type(cond.outputs()[0].value)));
  LoopTypes types(args, carried);
  args.out = RLX_TRY(types.carries(std::span(given).first(carries)));
  size_t outputs = args.attrs.graph("body")->outputs().size();
  Dim trips = outputs > carries ? RLX_TRY(types.unknown_trips(args.attrs.i64("max_trips"))) : Dim();
  for (size_t i = carries; i < outputs; i++) args.out.push_back(RLX_TRY(types.stacked(i, trips)));
  return types.keep();
}

// The number of trips: the size that all xs share, or `length` if there are none.
static Result<Dim> scan_length(InferArgs& args, std::span<const ValueType> xs) {
  if (xs.empty() != args.attrs.has("length"))
    return args.fail(Code::kOption, xs.empty() ? "'length' is needed where there are no xs"
                                               : "'length' is that of the xs: it may not be given");
  Dim length = xs.empty() ? args.attrs.dim("length") : Dim();
  for (size_t i = 0; i < xs.size(); i++) {
    if (xs[i].rank() == 0) return wrong_rank(format("xs {}", i), "1 or more, for its trips", 0);
    length = i == 0 ? xs[i].dims[0] : RLX_TRY(args.same(length, xs[i].dims[0], "the number of trips of the xs"));
  }
  if (args.graph.range(length).hi < 0) return args.fail(Code::kShape, "the length " + length.text() + " is negative");
  if (args.graph.range(length).lo < 0) RLX_TRY(args.require_le(0, length, "the length"));
  return length;
}

double trips_of_while(const Graph&, const Node& node) {
  int64_t most = node.attrs.i64("max_trips");
  return most < 0 ? std::numeric_limits<double>::infinity() : static_cast<double>(most);
}

double trips_of_scan(const Graph& graph, const Node& node) {
  auto carries = static_cast<size_t>(node.attrs.i64("n_carry"));
  Dim length = node.attrs.has("length") ? node.attrs.dim("length") : graph.type(node.in[carries]).dims[0];
  return length.is_literal() ? static_cast<double>(length.literal()) : 1;
}

Status infer_scan(InferArgs& args) {
  std::vector<ValueType> given = RLX_TRY(all_given(args, 0));
  auto carries = static_cast<size_t>(args.attrs.i64("n_carry")), xs = static_cast<size_t>(args.attrs.i64("n_xs"));
  if (carries + xs > given.size())
    return args.fail(Code::kOption,
                     format("n_carry is {} and n_xs is {}, but the node has {}: first the carries, then the xs",
                            carries, xs, plural(given.size(), "input")));
  Dim length = RLX_TRY(scan_length(args, std::span(given).subspan(carries, xs)));
  for (size_t i = carries; i < carries + xs; i++) given[i].dims.erase(given[i].dims.begin());
  Symbols carried = RLX_TRY(store_carried(args, carries, {"body"}));
  RLX_TRY(check_inputs(args, "body", given, carried));
  RLX_TRY(check_output_least(args, std::max<size_t>(carries, 1)));
  LoopTypes types(args, carried, length);
  args.out = RLX_TRY(types.carries(std::span(given).first(carries)));
  for (size_t i = carries; i < args.attrs.graph("body")->outputs().size(); i++)
    args.out.push_back(RLX_TRY(types.stacked(i, length)));
  return types.keep();
}

}  // namespace rlx
