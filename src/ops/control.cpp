// SPDX-License-Identifier: Apache-2.0
// Control flow. A sub-graph sees its inputs only (semantics.md B1); its sizes are those of the graph around it, but for
// those that its own contents decide, and those that the carries of a `while` bring. Outside an `if` and a `while` both
// are fresh symbols.
#include "ops/control.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "ops/eval.h"
#include "ops/index.h"

namespace rlx {

// ---- symbols ----

std::vector<std::string> own_symbols(const Graph& graph) {
  std::vector<std::string> own;
  for (DecidedSize& size : decided_sizes(graph)) own.push_back(std::move(size.symbol));
  return own;
}

static bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

static bool mentions(const Dim& dim, const std::vector<std::string>& symbols) {
  bool found = false;
  visit_symbols(dim, [&](const std::string& symbol) { found |= among(symbols, symbol); });
  return found;
}

std::vector<std::string> carried_symbols(const Graph& body, size_t carries, const std::vector<std::string>& known) {
  std::vector<std::string> carried, own = own_symbols(body);
  for (size_t i = 0; i < std::min(carries, body.inputs().size()); i++)
    for (const Dim& dim : body.node(body.inputs()[i]).out[0].dims) {
      const std::string* name = dim.symbol_name();
      if (name && !among(known, *name) && !among(own, *name) && !among(carried, *name)) carried.push_back(*name);
    }
  return carried;
}

// ---- inference: a sub-graph against what it is given ----

static std::vector<std::string> known_symbols(const Graph& graph) {
  std::vector<std::string> known;
  for (const Graph* it = &graph; it; it = it->around())
    for (const auto& [symbol, range] : it->symbols()) known.push_back(symbol);
  return known;
}

static bool is_carried(const Dim& dim, const std::vector<std::string>& carried) {
  return dim.symbol_name() && among(carried, *dim.symbol_name());
}

// `carried` may stand for sizes of the graph's own.
// Those that it declares and does not use are nobody's business.
static Status check_symbols(InferArgs& args, const std::string& name, const Graph& graph,
                            const std::vector<std::string>& carried) {
  std::vector<std::string> own = own_symbols(graph);
  own.insert(own.end(), carried.begin(), carried.end());
  std::set<std::string> used;
  auto use = [&](const std::string& symbol) { used.insert(symbol); };
  for (const Node& node : graph.nodes()) visit_symbols(node, use);
  for (const Guard& guard : graph.guards())
    for (const Dim* dim : {&guard.a, &guard.b}) visit_symbols(*dim, use);
  for (const auto& [symbol, range] : graph.symbols()) {
    if (among(own, symbol) || !used.contains(symbol)) continue;
    if (!args.graph.has_symbol(symbol))
      return args.fail(Code::kShape, name + ": the size '" + symbol + "' is not known in the graph around it");
    // What was proved inside holds within the ranges there.
    RLX_TRY(args.require_le(range.lo, Dim::symbol(symbol), name));
    if (range.hi < Interval::kUnbounded) RLX_TRY(args.require_le(Dim::symbol(symbol), range.hi, name));
  }
  return {};
}

// Dims of `formal` that carries bring are not compared.
static Status check_type(InferArgs& args, const std::string& what, const ValueType& expected, const ValueType& got,
                         const ValueType& formal = {}, const std::vector<std::string>& carried = {}) {
  if (expected.dtype != got.dtype || expected.rank() != got.rank())
    return args
        .fail(got.dtype == expected.dtype ? Code::kShape : Code::kDtype,
              what + " is " + text_of(got) + ", not " + text_of(expected))
        .with("expected", text_of(expected))
        .with("got", text_of(got));
  for (size_t i = 0; i < got.rank(); i++)
    if (i >= formal.rank() || !is_carried(formal.dims[i], carried))
      RLX_TRY(args.same(expected.dims[i], got.dims[i], format("{}, axis {}", what, i)));
  return {};
}

// The sub-graph takes exactly these values.
static Status check_inputs(InferArgs& args, const char* attr, std::span<const ValueType> given,
                           const std::vector<std::string>& carried = {}) {
  const Graph& graph = *args.attrs.graph(attr);
  std::string name = "'" + std::string(attr) + "'";
  if (graph.inputs().size() != given.size())
    return args.fail(Code::kInvalidArgument,
                     format("{} takes {} inputs, not {}", name, graph.inputs().size(), given.size()));
  RLX_TRY(check_symbols(args, name, graph, carried));
  for (size_t i = 0; i < given.size(); i++) {
    const ValueType& formal = graph.node(graph.inputs()[i]).out[0];
    RLX_TRY(check_type(args, name + ", input '" + graph.leaf_name(graph.inputs()[i]) + "'", given[i], formal, formal,
                       carried));
  }
  return {};
}

static Status check_output_count(InferArgs& args, const char* attr, size_t expected) {
  size_t got = args.attrs.graph(attr)->outputs().size();
  if (got == expected) return {};
  return args.fail(Code::kInvalidArgument, format("'{}' has {} outputs, not {}", attr, got, expected));
}

// The type of an output of a loop's body, in sizes that are known around it.
static Result<ValueType> body_output(InferArgs& args, size_t i) {
  const Graph& body = *args.attrs.graph("body");
  const GraphOutput& output = body.outputs()[i];
  const ValueType& type = body.type(output.value);
  std::vector<std::string> own = own_symbols(body);
  for (const Dim& dim : type.dims)
    if (mentions(dim, own))
      return args.fail(Code::kShape, "'body', output '" + output.name + "': the size " + dim.text() +
                                         " depends on contents, so it may differ from step to step");
  return type;
}

static Status check_carries(InferArgs& args, std::span<const ValueType> carries) {
  for (size_t i = 0; i < carries.size(); i++) {
    std::string what = "'body', output '" + args.attrs.graph("body")->outputs()[i].name + "'";
    RLX_TRY(check_type(args, what + " (a carry)", carries[i], RLX_TRY(body_output(args, i))));
  }
  return {};
}

// All values, or an error for one that is left out.
static Result<std::vector<ValueType>> all_given(InferArgs& args, size_t first) {
  std::vector<ValueType> given;
  for (size_t i = first; i < args.in.size(); i++) {
    if (!args.in[i]) return args.fail(Code::kInvalidArgument, format("input {} may not be left out", i));
    given.push_back(*args.in[i]);
  }
  return given;
}

// ---- if ----

// The sizes of an `if` whose branches differ: fresh symbols, one for each pair of differing sizes. Their names stay
// with the node, so that the same node in another graph means the same sizes.
struct JoinedSizes {
  struct Pair {
    Dim a, b;
    std::string symbol;
  };
  InferArgs& args;
  const Graph &then, &otherwise;
  std::vector<std::string> own_then = own_symbols(then), own_otherwise = own_symbols(otherwise);
  std::vector<Pair> pairs = {};

  Result<std::string> next_name() const {
    if (!args.attrs.has("symbols")) return fresh_symbol(args.graph, "if");
    const auto& names = args.attrs.strs("symbols");
    if (pairs.size() < names.size()) return names[pairs.size()];
    return args.fail(Code::kOption, "'symbols' names fewer sizes than the branches leave open");
  }

  Result<Dim> join(const Dim& a, const Dim& b, const std::string& what) {
    if (!mentions(a, own_then) && !mentions(b, own_otherwise)) {
      Interval difference = args.graph.range(b - a);
      if (difference.lo <= 0 && difference.hi >= 0) return args.same(a, b, what);
    }
    for (const Pair& pair : pairs)
      if (pair.a == a && pair.b == b) return Dim::symbol(pair.symbol);
    std::string symbol = RLX_TRY(next_name());
    Interval x = then.declared_range(a), y = otherwise.declared_range(b);
    RLX_TRY(args.graph.declare_symbol(symbol, {std::max<int64_t>(0, std::min(x.lo, y.lo)), std::max(x.hi, y.hi)}));
    pairs.push_back({a, b, symbol});
    return Dim::symbol(symbol);
  }
};

Status infer_if(InferArgs& args) {
  if (args.rank() != 0) return args.fail(Code::kShape, "pred must be a scalar").with("input", "pred");
  std::vector<ValueType> given = RLX_TRY(all_given(args, 1));
  for (const char* branch : {"then", "else"}) RLX_TRY(check_inputs(args, branch, given));
  const Graph &then = *args.attrs.graph("then"), &otherwise = *args.attrs.graph("else");
  if (then.outputs().empty()) return args.fail(Code::kInvalidArgument, "'then' has no output");
  RLX_TRY(check_output_count(args, "else", then.outputs().size()));
  JoinedSizes sizes{args, then, otherwise};
  args.out.clear();
  for (size_t i = 0; i < then.outputs().size(); i++) {
    const ValueType &a = then.type(then.outputs()[i].value), &b = otherwise.type(otherwise.outputs()[i].value);
    if (a.dtype != b.dtype || a.rank() != b.rank())
      return args.fail(a.dtype == b.dtype ? Code::kShape : Code::kDtype,
                       format("output {} is {} in 'then' and {} in 'else'", i, a, b));
    ValueType joined{a.dtype, {}};
    for (size_t axis = 0; axis < a.rank(); axis++)
      joined.dims.push_back(RLX_TRY(sizes.join(a.dims[axis], b.dims[axis], format("output {}, axis {}", i, axis))));
    args.out.push_back(std::move(joined));
  }
  std::vector<std::string> names;
  for (const auto& pair : sizes.pairs) names.push_back(pair.symbol);
  if (!names.empty()) args.attrs = args.attrs.with("symbols", std::move(names));
  return {};
}

// ---- while, scan ----

// Carries whose dims a trip may change: outside, each such dim is a fresh symbol, as far as the body's goes.
static Status join_carried(InferArgs& args, const std::vector<std::string>& carried) {
  const Graph& body = *args.attrs.graph("body");
  std::vector<std::string> names = args.attrs.has("symbols") ? args.attrs.strs("symbols") : std::vector<std::string>();
  size_t next = 0;
  for (size_t i = 0; i < args.out.size(); i++) {
    const ValueType &formal = body.node(body.inputs()[i]).out[0], &got = body.type(body.outputs()[i].value);
    std::string what = "'body', output '" + body.outputs()[i].name + "' (a carry)";
    RLX_TRY(check_type(args, what, args.out[i], got, formal, carried));
    std::vector<std::string> own = own_symbols(body);
    own.insert(own.end(), carried.begin(), carried.end());
    for (size_t axis = 0; axis < formal.rank(); axis++) {
      if (!is_carried(formal.dims[axis], carried)) {
        if (mentions(got.dims[axis], own))
          return args.fail(Code::kShape,
                           format("{}, axis {}: the size {} may differ from trip to trip", what, axis, got.dims[axis]));
        continue;
      }
      if (next == names.size()) names.push_back(fresh_symbol(args.graph, "while"));
      Interval before = args.graph.declared_range(args.out[i].dims[axis]),
               inside = body.declared_range(formal.dims[axis]);
      RLX_TRY(
          args.graph.declare_symbol(names[next], {std::max<int64_t>(0, std::min(before.lo, inside.lo)), inside.hi}));
      args.out[i].dims[axis] = Dim::symbol(names[next++]);
    }
  }
  args.attrs = args.attrs.with("symbols", std::move(names));
  return {};
}

Status infer_while(InferArgs& args) {
  std::vector<ValueType> given = RLX_TRY(all_given(args, 0));
  size_t carries = static_cast<size_t>(args.attrs.i64("n_carry"));
  if (carries > given.size())
    return args.fail(Code::kOption, format("n_carry is {}, but there are {} inputs", carries, given.size()));
  std::vector<std::string> known = known_symbols(args.graph), carried;
  for (const char* attr : {"cond", "body"}) {
    carried = carried_symbols(*args.attrs.graph(attr), carries, known);
    RLX_TRY(check_inputs(args, attr, given, carried));
  }
  RLX_TRY(check_output_count(args, "cond", 1));
  RLX_TRY(check_output_count(args, "body", carries));
  const Graph& cond = *args.attrs.graph("cond");
  RLX_TRY(check_type(args, "'cond', output '" + cond.outputs()[0].name + "'", {DType::kBool, {}},
                     cond.type(cond.outputs()[0].value)));
  args.out.assign(given.begin(), given.begin() + static_cast<ptrdiff_t>(carries));
  return carried.empty() ? check_carries(args, args.out) : join_carried(args, carried);
}

// The number of steps: the size that all xs share, or `length` where there are none.
static Result<Dim> scan_length(InferArgs& args, std::span<const ValueType> xs) {
  if (xs.empty() != args.attrs.has("length"))
    return args.fail(Code::kOption, xs.empty() ? "'length' is needed where there are no xs"
                                               : "'length' is that of the xs: it may not be given");
  Dim length = xs.empty() ? args.attrs.dim("length") : Dim();
  for (size_t i = 0; i < xs.size(); i++) {
    if (xs[i].rank() == 0) return args.fail(Code::kShape, format("xs {} is a scalar: it has no steps", i));
    length = i == 0 ? xs[i].dims[0] : RLX_TRY(args.same(length, xs[i].dims[0], "the number of steps of the xs"));
  }
  if (args.graph.range(length).hi < 0) return args.fail(Code::kShape, "the length " + length.text() + " is negative");
  return length;
}

Status infer_scan(InferArgs& args) {
  std::vector<ValueType> given = RLX_TRY(all_given(args, 0));
  auto carries = static_cast<size_t>(args.attrs.i64("n_carry")), xs = static_cast<size_t>(args.attrs.i64("n_xs"));
  if (carries + xs > given.size())
    return args.fail(Code::kOption, format("n_carry {} and n_xs {} exceed {} inputs", carries, xs, given.size()));
  Dim length = RLX_TRY(scan_length(args, std::span(given).subspan(carries, xs)));
  for (size_t i = carries; i < carries + xs; i++) given[i].dims.erase(given[i].dims.begin());
  RLX_TRY(check_inputs(args, "body", given));
  size_t outputs = args.attrs.graph("body")->outputs().size();
  if (outputs < std::max<size_t>(carries, 1))
    return args.fail(Code::kInvalidArgument,
                     format("'body' has {} outputs, not {} or more", outputs, std::max<size_t>(carries, 1)));
  args.out.assign(given.begin(), given.begin() + static_cast<ptrdiff_t>(carries));
  RLX_TRY(check_carries(args, args.out));
  for (size_t i = carries; i < outputs; i++) {
    ValueType stacked = RLX_TRY(body_output(args, i));
    stacked.dims.insert(stacked.dims.begin(), length);
    args.out.push_back(std::move(stacked));
  }
  return {};
}

// ---- eval ----

// Operands do not own their bytes, and a sub-graph may hand an input on as an output: it is given copies.
static Result<std::vector<Tensor>> copies(std::span<const Operand> operands) {
  std::vector<Tensor> tensors;
  for (const Operand& operand : operands) {
    if (!operand) continue;
    tensors.push_back(RLX_TRY(Tensor::create(operand.dtype, operand.dims)));
    if (tensors.back().bytes()) std::memcpy(tensors.back().data(), operand.data, tensors.back().bytes());
  }
  return tensors;
}

static Status copy_out(EvalArgs& args, size_t i, const Tensor& tensor) {
  if (!std::ranges::equal(tensor.dims(), args.out[i].dims))
    return args.fail(Code::kShape, format("output {} is {}, not {}", i, type_text(tensor.dtype(), tensor.dims()),
                                          type_text(args.out[i].dtype, args.out[i].dims)));
  if (tensor.bytes()) std::memcpy(args.out[i].data, tensor.data(), tensor.bytes());
  return {};
}

Status eval_if(EvalArgs& args) {
  const Graph& branch = *args.attrs.graph(*args.in[0].as<bool8>() ? "then" : "else");
  std::vector<Tensor> given = RLX_TRY(copies(args.in.subspan(1))), results = RLX_TRY((*args.run)(branch, given));
  for (size_t i = 0; i < results.size(); i++) RLX_TRY(copy_out(args, i, results[i]));
  return {};
}

Result<std::vector<Tensor>> while_trips(const Attrs& attrs, std::vector<Tensor> values, const RunBody& run) {
  int64_t most = attrs.i64("max_trips");
  for (int64_t trip = 0; most < 0 || trip < most; trip++) {
    std::vector<Tensor> proceed = RLX_TRY(run(*attrs.graph("cond"), values));
    if (!*proceed[0].as<bool8>()) break;
    std::vector<Tensor> next = RLX_TRY(run(*attrs.graph("body"), values));
    std::move(next.begin(), next.end(), values.begin());
  }
  return values;
}

Status eval_while(EvalArgs& args) {
  std::vector<Tensor> values = RLX_TRY(while_trips(args.attrs, RLX_TRY(copies(args.in)), *args.run));
  for (size_t i = 0; i < args.out.size(); i++) RLX_TRY(copy_out(args, i, values[i]));
  return {};
}

Status eval_scan(EvalArgs& args) {
  const Graph& body = *args.attrs.graph("body");
  auto carries = static_cast<size_t>(args.attrs.i64("n_carry")), xs = static_cast<size_t>(args.attrs.i64("n_xs"));
  std::vector<Tensor> given = RLX_TRY(copies(args.in)), values = given;
  int64_t length = xs ? given[carries].dims()[0] : RLX_TRY(args.dim("length"));
  for (int64_t step = 0; step < length; step++) {
    int64_t t = args.attrs.flag("reverse") ? length - 1 - step : step;
    for (size_t i = carries; i < carries + xs; i++) values[i] = RLX_TRY(given[i].row(t));
    std::vector<Tensor> results = RLX_TRY((*args.run)(body, values));
    for (size_t i = carries; i < results.size(); i++)
      if (size_t bytes = results[i].bytes())
        std::memcpy(args.out[i].data + static_cast<size_t>(t) * bytes, results[i].data(), bytes);
    std::move(results.begin(), results.begin() + static_cast<ptrdiff_t>(carries), values.begin());
  }
  for (size_t i = 0; i < carries; i++) RLX_TRY(copy_out(args, i, values[i]));
  return {};
}

}  // namespace rlx
