// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that affect the import itself: literals, branches, loops.
#include <algorithm>
#include <iterator>

#include "import/onnx/call.h"
#include "import/onnx/importer.h"

namespace rlx::onnx {

namespace {

constexpr int64_t kMostTrips = 4096;  // of a loop that is unrolled

// A tensor of rank 1, or of rank 0 from a single value.
template <class T>
Tensor literal(Call& call, DType dtype, const std::vector<T>& values, size_t rank) {
  int64_t dims[] = {static_cast<int64_t>(values.size())};
  auto tensor = Tensor::create(dtype, std::span<const int64_t>(dims, rank));
  if (!tensor.ok()) return call.fail(tensor.status()), Tensor();
  std::copy(values.begin(), values.end(), tensor->as<T>());
  return *tensor;
}

void build_constant(Call& call) {
  if (const TensorProto* proto = call.tensor("value")) {
    auto tensor = call.importer().read(*proto);
    if (!tensor.ok()) return call.fail(tensor.status());
    return call.out(0, *tensor);
  }
  if (call.has_attr("value_int"))
    return call.out(0, literal<int64_t>(call, DType::kI64, {call.i64("value_int", 0)}, 0));
  if (call.has_attr("value_ints")) return call.out(0, literal(call, DType::kI64, call.i64s("value_ints"), 1));
  bool is_scalar = call.has_attr("value_float");
  if (!is_scalar && !call.has_attr("value_floats"))
    return call.fail(Code::kUnsupported, "a constant of strings, or sparse");
  std::vector<double> wide = is_scalar ? std::vector<double>{call.f64("value_float", 0)} : call.f64s("value_floats");
  call.out(0, literal(call, DType::kF32, std::vector<float>(wide.begin(), wide.end()), is_scalar ? 0 : 1));
}

// Exporters write the choice of a code path as an If whose condition follows from sizes or literals.
void take_branch(Call& call, const GraphProto& branch) {
  auto results = call.importer().inline_graph(branch);
  if (!results.ok()) return call.fail(results.status());
  if (results->size() != call.outputs()) return call.fail(Code::kData, "the branch has another number of outputs");
  for (size_t i = 0; i < results->size(); i++) call.out(i, (*results)[i]);
}

void add_captures(Call& call, const BodyGraph& body, std::vector<Expr>& in) {
  for (OnnxValue* value : body.captures) in.push_back(call.importer().expr(*value, call.builder()));
}

bool have_unequal_ranks(const BodyGraph& a, const BodyGraph& b) {
  for (size_t i = 0; i < std::min(a.outputs.size(), b.outputs.size()); i++)
    if (a.graph.type(a.outputs[i]).rank() != b.graph.type(b.outputs[i]).rank()) return true;
  return false;
}

Status build_branches(Call& call, const GraphProto& yes, const GraphProto& no) {
  BodyGraph then = RLX_TRY(call.importer().body_graph(yes, {}, {}));
  BodyGraph otherwise = RLX_TRY(call.importer().body_graph(no, {}, then.captures));
  for (size_t i = then.captures.size(); i < otherwise.captures.size(); i++) {
    const ValueType& type = otherwise.captures[i]->type;
    RLX_TRY(then.graph.add_input("captured." + std::to_string(i), type.dtype, type.dims));
  }
  std::vector<Expr> in{reshape(call.in(0), std::vector<Dim>())};
  add_captures(call, otherwise, in);
  bool has_unequal_ranks = have_unequal_ranks(then, otherwise);
  auto body_then = RLX_TRY(then.finish()), body_else = RLX_TRY(otherwise.finish());
  Outputs results = call.ops("if", in, {{"then", std::move(body_then)}, {"else", std::move(body_else)}});
  if (has_unequal_ranks && !call.builder().status().ok()) return call.builder().take_status().with(kUnequalRanks, "1");
  for (size_t i = 0; i < std::min(results.size(), call.outputs()); i++) call.out(i, results[i]);
  return {};
}

void build_if(Call& call) {
  const GraphProto *yes = call.graph("then_branch"), *no = call.graph("else_branch");
  if (!yes || !no) return;
  if (!call.has(0)) return call.fail(Code::kData, "its condition is missing");
  const Sizes* condition = call.sizes(0);
  if (condition && condition->items.size() != 1) return call.fail(Code::kData, "the condition is not one bool");
  if (condition && condition->items[0].is_literal()) return take_branch(call, condition->items[0].is(0) ? *no : *yes);
  // A branch that is never taken at these sizes may be invalid at them. So only the branch that is taken decides what
  // is refused.
  Importer::Refusals before = call.importer().refusals();
  Status status = build_branches(call, *yes, *no);
  if (status.ok()) status = call.status();
  if (status.ok()) return;
  if (call.importer().static_inputs(*call.value(0))) {
    call.importer().refusals().wanted = std::move(before.wanted);
    call.importer().refusals().only_unknown = before.only_unknown;
  }
  call.fail_unless_known(0, status);
}

// ---- bodies of loops ----

// The body of a loop. Its first `skipped` inputs and `skipped_out` outputs are not carries. A size of a carry that a
// trip may change becomes a symbol of the body. Other sizes that follow from it may then change too, so the body is
// built again. If carries are steady, the run checks that no trip changes their sizes.
Result<BodyGraph> loop_body(Call& call, const GraphProto& proto, std::vector<ValueType>& types, size_t skipped,
                            size_t carries, size_t skipped_out, bool is_steady = false) {
  size_t symbols = 0;
  auto next_symbol = [&] {
    std::string symbol;
    do symbol = "carry." + std::to_string(symbols++);
    while (call.builder().graph().has_symbol(symbol));
    return symbol;
  };
  while (true) {
    BodyGraph body = RLX_TRY(call.importer().body_graph(proto, types, {}));
    if (body.outputs.size() < skipped_out + carries) return Status(Code::kData, "the body has too few outputs");
    if (is_steady) return body;
    bool is_settled = true;
    for (size_t i = 0; i < carries; i++) {
      ValueType& before = types[skipped + i];
      const ValueType& after = body.graph.type(body.outputs[skipped_out + i]);
      for (size_t axis = 0; axis < before.rank() && before.rank() == after.rank(); axis++) {
        const std::string* name = before.dims[axis].symbol_name();
        bool varies = name && !call.builder().graph().has_symbol(*name);
        if (varies || before.dims[axis] == after.dims[axis]) continue;
        before.dims[axis] = Dim::symbol(next_symbol());
        is_settled = false;
      }
    }
    if (is_settled) return body;
  }
}

// ---- Loop: the number of the trip and the condition are carries, the most trips an input that does not vary ----

// Exporters declare the trip number or the condition of a body as a list of one, and other runtimes pass it so.
std::vector<Dim> scalar_or_list(const GraphProto& body, size_t input) {
  if (input >= body.input.size()) return {};
  const std::vector<TensorTypeProto>& type = body.input[input].type.tensor_type;
  bool is_list = !type.empty() && !type[0].shape.empty() && type[0].shape[0].dim.size() == 1;
  return std::vector<Dim>(is_list ? 1 : 0, 1);
}

// Whether the condition after a trip is unchanged, or true.
bool goes_on(const BodyGraph& body) {
  Value after = body.outputs[0];
  const Tensor* literal = body.graph.constant(after);
  return literal ? literal->as<uint8_t>()[0] != 0 : after == Value{body.graph.inputs()[1], 0};
}

Result<std::shared_ptr<const Graph>> loop_condition(const BodyGraph& body, bool has_trips) {
  Graph graph;
  Builder b(graph);
  for (const auto& [name, range] : body.graph.symbols()) RLX_TRY(graph.declare_symbol(name, range));
  for (uint32_t input : body.graph.inputs()) {
    const ValueType& type = body.graph.node(input).out[0];
    RLX_TRY(graph.add_input(body.graph.leaf_name(input), type.dtype, type.dims));
  }
  auto in = [&](size_t i) { return b.wrap({graph.inputs()[i], 0}); };
  Expr more = has_trips ? logical_and(in(1), less(in(0), in(graph.inputs().size() - 1))) : in(1);
  more = reshape(more, std::vector<Dim>());
  RLX_TRY(Status(b.status()));
  RLX_TRY(graph.add_output("more", more.value()));
  return std::make_shared<const Graph>(std::move(graph));
}

constexpr std::string_view kOpenCondition = "condition";  // detail of a status

Result<bool> known_condition(const OnnxValue& value) {
  if (value.tensor && value.tensor.dtype() == DType::kBool && value.tensor.count() == 1)
    return value.tensor.as<uint8_t>()[0] != 0;
  if (value.sizes && value.sizes->items.size() == 1 && value.sizes->items[0].is_literal())
    return !value.sizes->items[0].is(0);
  return Status(Code::kUnsupported, "a condition that only a run knows, of trips with sequences or growing rows")
      .with(kOpenCondition, "1");
}

// Unrolls a loop whose number of trips is known at import.
Status unroll(Call& call, const GraphProto& proto) {
  if (proto.input.size() < 2 || proto.output.size() + 1 < proto.input.size())
    return Status(Code::kData, "the body has too few inputs or outputs");
  size_t carries = proto.input.size() - 2;
  std::vector<Dim> trip_dims = scalar_or_list(proto, 0), cond_dims = scalar_or_list(proto, 1);
  std::vector<int64_t> trips = call.has(0) ? call.numbers(0, "M") : std::vector<int64_t>{INT64_MAX};
  std::vector<int64_t> goes_on = call.has(1) ? call.numbers(1, "cond") : std::vector<int64_t>{1};
  RLX_TRY(call.status());
  if (trips.size() != 1 || goes_on.size() != 1) return Status(Code::kData, "'M' or 'cond' is not one number");
  std::vector<OnnxValue> values;
  for (size_t i = 0; i < carries; i++) values.push_back(call.local(2 + i));
  std::vector<std::vector<Expr>> rows(proto.output.size() - 1 - carries);
  for (int64_t trip = 0; trip < trips[0] && goes_on[0]; trip++) {
    if (trip == kMostTrips)
      return Status(Code::kUnsupported, format("more than {} trips, of sequences or growing rows", trip));
    std::vector<OnnxValue> in(2);
    in[0] = {.type = {DType::kI64, trip_dims}, .tensor = literal<int64_t>(call, DType::kI64, {trip}, trip_dims.size())};
    in[1] = {.type = {DType::kBool, cond_dims}, .tensor = literal<uint8_t>(call, DType::kBool, {1}, cond_dims.size())};
    std::move(values.begin(), values.end(), std::back_inserter(in));
    std::vector<OnnxValue> out = RLX_TRY(call.importer().inline_graph(proto, std::move(in)));
    for (const OnnxValue& value : out)
      if (value.refused)
        return Status(Code::kUnsupported, "a node of its body cannot be imported").with(kFollowsRefused, "");
    goes_on[0] = RLX_TRY(known_condition(out[0]));
    for (size_t i = 0; i < carries; i++) values[i] = std::move(out[1 + i]);
    for (size_t i = 0; i < rows.size(); i++)
      rows[i].push_back(unsqueeze(call.importer().expr(out[1 + carries + i], call.builder()), 0));
    RLX_TRY(call.status());
  }
  for (size_t i = 0; i < carries; i++) call.out(i, values[i]);
  for (size_t i = 0; i < rows.size(); i++) {
    if (rows[i].empty()) return Status(Code::kUnsupported, "rows of no trips");
    call.out(carries + i, concat(rows[i], 0));
  }
  return {};
}

constexpr std::string_view kUnrolledOnly = "unrolled";  // detail of a status: no body can say it

// Stacked rows must have one size.
Status check_rows(const BodyGraph& body, size_t first, const Graph& around) {
  bool grows = false;
  for (size_t i = first; i < body.outputs.size(); i++)
    for (const Dim& dim : body.graph.type(body.outputs[i]).dims)
      visit_symbols(dim, [&](const std::string& name) { grows |= !around.has_symbol(name); });
  if (!grows) return {};
  return Status(Code::kUnsupported, "rows of a size that changes from trip to trip").with(kUnrolledOnly, "1");
}

// A body has the same ranks at every trip.
Status check_ranks(const BodyGraph& body, std::span<const ValueType> carries, size_t first) {
  for (size_t i = 0; i < carries.size(); i++) {
    const ValueType& after = body.graph.type(body.outputs[first + i]);
    if (carries[i].rank() != after.rank())
      return Status(Code::kUnsupported, format("a value that is {} before a trip and {} after it", carries[i], after))
          .with(kUnrolledOnly, "1");
  }
  return {};
}

Status build_trips(Call& call, const GraphProto& proto) {
  std::vector<ValueType> types{{DType::kI64, scalar_or_list(proto, 0)}, {DType::kBool, scalar_or_list(proto, 1)}};
  for (size_t i = 2; i < call.inputs(); i++) types.push_back(call.type(i));
  size_t carries = types.size();
  BodyGraph body = RLX_TRY(loop_body(call, proto, types, 2, carries - 2, 1));
  RLX_TRY(check_ranks(body, std::span(types).subspan(2), 1));
  RLX_TRY(check_rows(body, carries - 1, call.builder().graph()));
  bool may_stop = call.has(1) && !(call.sizes(1) && call.sizes(1)->items[0].is(1));
  bool is_counted = call.has(0) && call.sizes(0) && !may_stop && goes_on(body);
  Builder inner(body.graph);
  Builder& b = call.builder();
  Expr first_trip = b.constant(literal<int64_t>(call, DType::kI64, {0}, types[0].dims.size()));
  Expr goes = call.has(1) ? call.in(1) : less_equal(first_trip, first_trip);
  std::vector<Expr> in{first_trip, reshape(goes, types[1].dims)};
  for (size_t i = 2; i < call.inputs(); i++) in.push_back(call.in(i));
  add_captures(call, body, in);
  Expr next = inner.wrap({body.graph.inputs()[0], 0}) + 1.0;
  if (body.graph.type(body.outputs[0]).dims != types[1].dims)
    body.outputs[0] = reshape(inner.wrap(body.outputs[0]), types[1].dims).value();
  RLX_TRY(Status(inner.status()));
  body.outputs.insert(body.outputs.begin(), next.value());
  NamedAttrs attrs{{"n_carry", static_cast<int64_t>(carries)}};
  if (is_counted) {
    attrs.emplace_back("n_xs", int64_t{0});
    attrs.emplace_back("length", max(Dim(0), call.dims(0, "M")[0]));
  } else {
    if (call.has(0)) {
      RLX_TRY(body.graph.add_input("trips", DType::kI64, {}));
      in.push_back(reshape(call.in(0), std::vector<Dim>()));
    }
    attrs.emplace_back("cond", RLX_TRY(loop_condition(body, call.has(0))));
  }
  attrs.emplace_back("body", RLX_TRY(body.finish()));
  Outputs results = call.ops(is_counted ? "scan" : "while", in, attrs);
  for (size_t i = 2; i < results.size() && i - 2 < call.outputs(); i++) call.out(i - 2, results[i]);
  return {};
}

// ---- a sequence that every trip makes longer by one: the rows that the trips stack ----

bool reads(const GraphProto& graph, std::string_view name, const NodeProto* besides) {
  auto has = [&](const NodeProto& node) {
    if (&node == besides) return false;
    if (std::ranges::find(node.input, name) != node.input.end()) return true;
    for (const AttributeProto& attribute : node.attribute)
      for (const GraphProto& inner : attribute.graphs)
        if (reads(inner, name, nullptr) ||
            std::ranges::any_of(inner.output, [&](const auto& it) { return it.name == name; }))
          return true;
    return false;
  };
  return std::ranges::any_of(graph.node, has);
}

// The node that appends a value to the sequence `before`, if that is all that happens to it.
const NodeProto* appending_node(const GraphProto& body, std::string_view before, std::string_view after) {
  for (const NodeProto& node : body.node) {
    bool appends = node.op_type == "SequenceInsert" && node.input.size() >= 2 && node.input[0] == before &&
                   (node.input.size() == 2 || node.input[2].empty()) && node.output[0] == after;
    auto outputs = std::ranges::count_if(body.output, [&](const auto& it) { return it.name == after; });
    if (appends && outputs == 1 && !reads(body, before, &node) && !reads(body, after, nullptr)) return &node;
  }
  return nullptr;
}

struct StackedLoop {
  GraphProto body;
  NodeProto node;
  std::vector<size_t> inputs;         // of the original node, without the sequences
  std::vector<size_t> kept, stacked;  // outputs of the original node: tensors, and sequences
};

// nullopt if a sequence is not empty at the start, or if a trip does anything to it but append.
std::optional<StackedLoop> stacked_loop(Call& call, const GraphProto& proto) {
  size_t carries = proto.input.size() - std::min<size_t>(proto.input.size(), 2);
  if (proto.output.size() < carries + 1 || call.inputs() != carries + 2) return std::nullopt;
  StackedLoop loop{proto, call.node(), {0, 1}, {}, {}};
  std::vector<ValueInfoProto> inputs(proto.input.begin(), proto.input.begin() + 2), outputs{proto.output[0]}, rows;
  std::vector<const NodeProto*> appending;
  for (size_t i = 0; i < carries; i++) {
    const OnnxValue* start = call.value(2 + i);
    if (!start || !start->is_sequence) {
      if (!start) return std::nullopt;
      inputs.push_back(proto.input[2 + i]), outputs.push_back(proto.output[1 + i]);
      loop.inputs.push_back(2 + i), loop.kept.push_back(i);
      continue;
    }
    const NodeProto* node = appending_node(proto, proto.input[2 + i].name, proto.output[1 + i].name);
    if (!node || start->absent || start->is_stacked || !start->items.empty()) return std::nullopt;
    appending.push_back(node), loop.stacked.push_back(i);
    rows.push_back({node->input[1], {}});
  }
  for (size_t i = carries + 1; i < proto.output.size(); i++)
    outputs.push_back(proto.output[i]), loop.kept.push_back(i - 1);
  outputs.insert(outputs.end(), rows.begin(), rows.end());
  loop.body.input = std::move(inputs), loop.body.output = std::move(outputs);
  loop.body.node.clear();
  for (const NodeProto& node : proto.node)
    if (std::ranges::find(appending, &node) == appending.end()) loop.body.node.push_back(node);
  loop.node.output.assign(loop.kept.size() + loop.stacked.size(), proto.output[0].name);  // all are wanted
  return loop;
}

Status build_stacked(Call& call, StackedLoop loop) {
  const GraphProto& body = call.importer().keep(std::move(loop.body));
  Call inner = call.with(loop.node, loop.inputs);
  RLX_TRY(build_trips(inner, body));
  inner.graph("body");
  RLX_TRY(inner.status());
  std::vector<OnnxValue>& results = inner.results();
  for (size_t i = 0; i < loop.kept.size(); i++) call.out(loop.kept[i], results[i]);
  for (size_t i = 0; i < loop.stacked.size(); i++) {
    OnnxValue sequence{.is_sequence = true, .is_stacked = true};
    sequence.items.push_back(results[loop.kept.size() + i]);
    call.out(loop.stacked[i], sequence);
  }
  return {};
}

// If the number of trips is known, a loop with sequences is unrolled. Else sequences may be rows that it stacks.
Status build_with_sequences(Call& call, const GraphProto& body) {
  const Sizes* most = call.sizes(0);
  bool is_counted = most && most->items.size() == 1 && most->items[0].is_literal();
  Importer::Refusals before = call.importer().refusals();
  Status status = is_counted ? unroll(call, body) : Status();
  if (is_counted && !status.detail(kOpenCondition)) return status;
  call.importer().refusals() = before;
  if (auto loop = stacked_loop(call, body)) {
    if (build_stacked(call, std::move(*loop)).ok()) return {};
    call.importer().refusals() = std::move(before);
  }
  return is_counted ? status : unroll(call, body);  // known sizes of one trip may suffice where a body fails
}

// A body cannot have sequences, nor carries of another rank or stacked rows of another size at every trip: such a loop
// is unrolled.
void build_loop(Call& call) {
  const GraphProto* body = call.graph("body");
  if (!body) return;
  bool has_sequences = call.inputs() < body->input.size();
  for (size_t i = 2; i < call.inputs(); i++) has_sequences |= !call.has(i) || call.value(i)->is_sequence;
  if (has_sequences) return call.fail(build_with_sequences(call, *body));
  Importer::Refusals before = call.importer().refusals();
  Status status = build_trips(call, *body);
  if (!status.detail(kUnrolledOnly)) return call.fail(status);
  call.importer().refusals() = std::move(before);
  call.fail(unroll(call, *body));
}

// ---- Scan ----

// The axes and directions of the scanned inputs and outputs.
struct ScanWays {
  std::vector<int64_t> axes;
  std::vector<bool> backwards;
  bool all(bool is_backwards) const {
    return std::all_of(backwards.begin(), backwards.end(), [=](bool it) { return it == is_backwards; });
  }
};

ScanWays scan_ways(Call& call, const char* axes, const char* directions, size_t count) {
  ScanWays ways{call.i64s(axes), {}};
  std::vector<int64_t> given = call.i64s(directions);
  if ((!ways.axes.empty() && ways.axes.size() != count) || (!given.empty() && given.size() != count))
    call.fail(Code::kData, format("'{}' or '{}' does not name {} values", axes, directions, count));
  ways.axes.resize(count, 0);
  given.resize(count, 0);
  for (int64_t direction : given) {
    if (direction != 0 && direction != 1) call.fail(Code::kData, format("'{}' holds {}", directions, direction));
    ways.backwards.push_back(direction == 1);
  }
  return ways;
}

// One axis moved to another place, the others in order.
Expr moved(Expr x, int64_t from, int64_t to) {
  if (from == to) return x;
  Axes perm;
  for (int64_t i = 0; i < static_cast<int64_t>(x.rank()); i++)
    if (i != from) perm.push_back(i);
  perm.insert(perm.begin() + to, from);
  return transpose(x, perm);
}

Expr flipped(Call& call, Expr x) {
  return call.op("flip", {x}, {{"axes", std::vector<int64_t>{0}}});
}

// A Scan node without its operands.
struct Walk {
  const GraphProto& body;
  size_t carries, xs;
  ScanWays reads, writes;
};

// Our scan goes along the first axis, with one direction for all values.
Result<Outputs> build_slices(Call& call, const Walk& walk, std::vector<Expr> in) {
  const auto& [proto, carries, xs, reads, writes] = walk;
  bool reverse = reads.all(true) && writes.all(true);
  std::vector<ValueType> types;
  for (size_t i = 0; i < in.size(); i++) {
    if (!in[i].valid()) return call.status();
    types.push_back(in[i].type());
    if (i < carries) continue;
    if (types[i].rank() == 0) return Status(Code::kData, "a scan over a scalar");
    in[i] = moved(in[i], call.axis(reads.axes[i - carries], types[i].rank()), 0);
    if (reads.backwards[i - carries] && !reverse) in[i] = flipped(call, in[i]);
    RLX_TRY(call.status());
    types[i] = in[i].type();
    types[i].dims.erase(types[i].dims.begin());
  }
  std::vector<ValueType> steady = types;
  BodyGraph body = RLX_TRY(loop_body(call, proto, types, 0, carries, 0));
  if (!check_rows(body, carries, call.builder().graph()).ok())
    body = RLX_TRY(loop_body(call, proto, steady, 0, carries, 0, true));
  add_captures(call, body, in);
  auto step = RLX_TRY(body.finish());
  Outputs results = call.ops("scan", in,
                             {{"n_carry", static_cast<int64_t>(carries)},
                              {"n_xs", static_cast<int64_t>(xs)},
                              {"reverse", int64_t{reverse}},
                              {"body", std::move(step)}});
  RLX_TRY(call.status());
  for (size_t i = carries; i < std::min(results.size(), call.outputs()); i++) {
    if (writes.backwards[i - carries] && !reverse) results[i] = flipped(call, results[i]);
    results[i] = moved(results[i], 0, call.axis(writes.axes[i - carries], results[i].rank()));
  }
  return results;
}

// Before opset 9 all operands have a leading batch axis: one scan for each of its elements.
Result<Outputs> build_batch(Call& call, const Walk& walk, const std::vector<Expr>& in) {
  if (call.has(0)) return Status(Code::kUnsupported, "lengths of sequences");
  for (const Expr& x : in)
    if (!x.valid() || x.rank() == 0 || !x.dim(0).is_literal() || x.dim(0).literal() > kMostTrips)
      return Status(Code::kUnsupported, "a batch whose size is not known, or large").with(kDependsOnSizes, "1");
  Outputs results;
  std::vector<std::vector<Expr>> rows;
  for (int64_t row = 0; row < in[0].dim(0).literal(); row++) {
    std::vector<Expr> of_row;
    for (const Expr& x : in)
      of_row.push_back(reshape(slice(x, 0, row, row + 1), {x.dims().begin() + 1, x.dims().end()}));
    Outputs out = RLX_TRY(build_slices(call, walk, std::move(of_row)));
    rows.resize(out.size());
    for (size_t i = 0; i < out.size(); i++) rows[i].push_back(unsqueeze(out[i], 0));
  }
  for (const std::vector<Expr>& each : rows) results.push_back(concat(each, 0));
  return results;
}

Status build_walk(Call& call, const GraphProto& proto) {
  bool has_batch = call.opset() < 9;
  size_t first = has_batch ? 1 : 0, operands = call.inputs() - std::min(first, call.inputs());
  auto xs = static_cast<size_t>(call.i64("num_scan_inputs", 0));
  if (xs < 1 || xs > operands) return Status(Code::kData, "num_scan_inputs is not that of its inputs");
  size_t carries = operands - xs;
  if (proto.output.size() < carries) return Status(Code::kData, "the body has too few outputs");
  Walk walk{proto, carries, xs,
            scan_ways(call, "scan_input_axes", has_batch ? "directions" : "scan_input_directions", xs),
            scan_ways(call, "scan_output_axes", "scan_output_directions", proto.output.size() - carries)};
  RLX_TRY(call.status());
  std::vector<Expr> in;
  for (size_t i = first; i < call.inputs(); i++) in.push_back(call.in(i));
  Outputs results = RLX_TRY(has_batch ? build_batch(call, walk, in) : build_slices(call, walk, in));
  for (size_t i = 0; i < std::min(results.size(), call.outputs()); i++) call.out(i, results[i]);
  return {};
}

void build_scan(Call& call) {
  const GraphProto* body = call.graph("body");
  if (body) call.fail(build_walk(call, *body));
}

constexpr NodeKind kKinds[] = {
    {.op_type = "Constant", .build = build_constant, .control = true},
    {.op_type = "If", .build = build_if, .control = true},
    {.op_type = "Loop", .build = build_loop, .control = true},
    {.op_type = "Scan", .build = build_scan, .control = true},
};

}  // namespace

std::span<const NodeKind> control_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
