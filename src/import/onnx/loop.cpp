// SPDX-License-Identifier: Apache-2.0
// Loop. It becomes a `scan` if its number of trips follows from sizes, else a `while`. The number of the trip and the
// condition are carries. A loop that no body can express is unrolled.
#include <algorithm>
#include <iterator>

#include "import/onnx/control.h"
#include "ir/symbols.h"

namespace rlx::onnx {

namespace {

// Exporters declare the trip number or the condition of a body as a list of one, and other runtimes pass it so.
std::vector<Dim> scalar_or_list(const GraphProto& body, size_t input) {
  if (input >= body.input.size()) return {};
  const std::vector<TensorTypeProto>& type = body.input[input].type.tensor_type;
  bool is_list = !type.empty() && !type[0].shape.empty() && type[0].shape[0].dim.size() == 1;
  return std::vector<Dim>(is_list ? 1 : 0, 1);
}

// Whether no trip makes the condition false: after each it is unchanged, or true.
bool keeps_condition(const BodyGraph& body) {
  Value after = body.outputs[0];
  const Tensor* literal = body.graph.constant(after);
  return literal ? literal->as<uint8_t>()[0] != 0 : after == Value{body.graph.inputs()[1], 0};
}

Result<std::shared_ptr<const Graph>> loop_condition(const BodyGraph& body, bool has_trips) {
  Graph graph;
  Builder b(graph);
  for (uint32_t input : body.graph.inputs()) {
    const ValueType& type = body.graph.node(input).out[0];
    RLX_TRY(share_symbols(body.graph, type.dims, graph));
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

Result<bool> known_condition(const Call& call, const OnnxValue& value) {
  if (value.tensor && value.tensor.dtype() == DType::kBool && value.tensor.count() == 1)
    return value.tensor.as<uint8_t>()[0] != 0;
  if (value.sizes && value.sizes->items.size() == 1 && value.sizes->items[0].is_literal())
    return !value.sizes->items[0].is(0);
  Status failure(Code::kUnsupported, "a condition that only a run knows, of trips with sequences or growing rows");
  return call.unknown(value, failure).with(kOpenCondition, "1");
}

// Unrolls a loop whose number of trips is known at import.
Status unroll(Call& call, const GraphProto& proto) {
  if (proto.input.size() < 2 || proto.output.size() + 1 < proto.input.size())
    return Status(Code::kData, "the body has too few inputs or outputs");
  size_t carries = proto.input.size() - 2;
  std::vector<Dim> trip_dims = scalar_or_list(proto, 0), cond_dims = scalar_or_list(proto, 1);
  std::vector<int64_t> trips = call.has(0) ? call.numbers(0, "M") : std::vector<int64_t>{INT64_MAX};
  std::vector<int64_t> condition = call.has(1) ? call.numbers(1, "cond") : std::vector<int64_t>{1};
  RLX_TRY(call.status());
  if (trips.size() != 1 || condition.size() != 1) return Status(Code::kData, "'M' or 'cond' is not one number");
  std::vector<OnnxValue> values;
  for (size_t i = 0; i < carries; i++) values.push_back(call.local(2 + i));
  std::vector<std::vector<Expr>> rows(proto.output.size() - 1 - carries);
  for (int64_t trip = 0; trip < trips[0] && condition[0]; trip++) {
    if (trip == kMaxTrips)
      return Status(Code::kUnsupported, format("more than {} trips, of sequences or growing rows", trip));
    std::vector<OnnxValue> in(2);
    in[0] = {.type = {DType::kI64, trip_dims}, .tensor = literal<int64_t>(call, DType::kI64, {trip}, trip_dims.size())};
    in[1] = {.type = {DType::kBool, cond_dims}, .tensor = literal<uint8_t>(call, DType::kBool, {1}, cond_dims.size())};
    std::move(values.begin(), values.end(), std::back_inserter(in));
    std::vector<OnnxValue> out = RLX_TRY(call.importer().inline_graph(proto, std::move(in)));
    for (const OnnxValue& value : out)
      if (value.refused)
        return Status(Code::kUnsupported, "a node of its body cannot be imported").with(kFollowsRefused, "1");
    condition[0] = RLX_TRY(known_condition(call, out[0]));
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

// Whether the number of trips follows from sizes alone.
bool is_counted(Call& call, const BodyGraph& body) {
  bool may_stop = call.has(1) && !(call.sizes(1) && call.sizes(1)->items[0].is(1));
  return call.has(0) && call.sizes(0) && !may_stop && keeps_condition(body);
}

// Adds the op `scan` or `while`.
Status build_loop_op(Call& call, const GraphProto& proto) {
  for (size_t i = 0; i < 2; i++)
    if (const Sizes* known = call.sizes(i); known && known->items.size() != 1)
      return Status(Code::kData, "'M' or 'cond' is not one number");
  std::vector<ValueType> types{{DType::kI64, scalar_or_list(proto, 0)}, {DType::kBool, scalar_or_list(proto, 1)}};
  for (size_t i = 2; i < call.inputs(); i++) types.push_back(call.type(i));
  size_t carries = types.size();
  BodyGraph body = RLX_TRY(loop_body(call, proto, types, {.count = carries - 2, .first_in = 2, .first_out = 1}));
  RLX_TRY(check_ranks(body, std::span(types).subspan(2), 1));
  RLX_TRY(check_rows(body, carries - 1, call.builder().graph()));
  bool is_scan = is_counted(call, body);
  Builder inner(body.graph);
  Builder& b = call.builder();
  Expr first_trip = b.constant(literal<int64_t>(call, DType::kI64, {0}, types[0].dims.size()));
  Expr condition = call.has(1) ? call.in(1) : less_equal(first_trip, first_trip);
  std::vector<Expr> in{first_trip, reshape(condition, types[1].dims)};
  for (size_t i = 2; i < call.inputs(); i++) in.push_back(call.in(i));
  add_captures(call, body, in);
  Expr next = inner.wrap({body.graph.inputs()[0], 0}) + 1.0;
  if (body.graph.type(body.outputs[0]).dims != types[1].dims)
    body.outputs[0] = reshape(inner.wrap(body.outputs[0]), types[1].dims).value();
  RLX_TRY(Status(inner.status()));
  body.outputs.insert(body.outputs.begin(), next.value());
  NamedAttrs attrs{{"n_carry", static_cast<int64_t>(carries)}};
  if (is_scan) {
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
  Outputs results = call.ops(is_scan ? "scan" : "while", in, attrs);
  for (size_t i = 2; i < results.size() && i - 2 < call.outputs(); i++) call.out(i - 2, results[i]);
  return {};
}

// ---- loops with sequences ----
// A sequence to which every trip appends one value becomes the rows that the trips stack. Where every trip puts it in
// front, the rows are in reverse order.

// Whether a node other than `besides` reads the value, at any level.
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

std::optional<int64_t> number_of(const Result<Tensor>& tensor) {
  bool is_number = tensor.ok() && tensor->count() == 1 && is_integer(tensor->dtype());
  return is_number ? std::optional(element_as_i64(*tensor, 0)) : std::nullopt;
}

// The number that a name in the body stands for, if it is a literal there or around it.
std::optional<int64_t> number_in(Call& call, const GraphProto& body, std::string_view name) {
  for (const TensorProto& initializer : body.initializer)
    if (initializer.name == name) return number_of(call.importer().read(initializer));
  for (const NodeProto& node : body.node) {
    if (std::ranges::find(node.output, name) == node.output.end()) continue;
    if (node.op_type != "Constant" || node.attribute.size() != 1) return std::nullopt;
    const AttributeProto& value = node.attribute[0];
    if (value.name == "value_int") return value.i;
    return value.tensors.empty() ? std::nullopt : number_of(call.importer().read(value.tensors[0]));
  }
  if (std::ranges::find(body.input, name, &ValueInfoProto::name) != body.input.end()) return std::nullopt;
  auto around = call.importer().find(name);
  return around.ok() && (*around)->tensor ? number_of((*around)->tensor) : std::nullopt;
}

// Whether a node puts a value at an end of the sequence, and at which.
enum class End { kNone, kFront, kBack };
End inserts_at(Call& call, const GraphProto& body, const NodeProto& node) {
  if (node.op_type != "SequenceInsert" || node.input.size() < 2) return End::kNone;
  if (node.input.size() == 2 || node.input[2].empty()) return End::kBack;
  return number_in(call, body, node.input[2]) == 0 ? End::kFront : End::kNone;
}

// The node that inserts a value at an end of the sequence `before`, if that is all that happens to it.
const NodeProto* inserting_node(Call& call, const GraphProto& body, std::string_view before, std::string_view after) {
  for (const NodeProto& node : body.node) {
    bool appends = inserts_at(call, body, node) != End::kNone && node.input[0] == before && node.output[0] == after;
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
  std::vector<End> ends = {};         // of each sequence: where a trip puts its row
};

// nullopt if a trip does anything to a sequence but append.
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
    const NodeProto* node = inserting_node(call, proto, proto.input[2 + i].name, proto.output[1 + i].name);
    if (!node || start->absent) return std::nullopt;
    loop.ends.push_back(inserts_at(call, proto, *node));
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

// The elements of a sequence as rows; absent if it is empty.
Expr rows_of(Call& call, const OnnxValue& sequence) {
  std::vector<Expr> rows;
  for (OnnxValue item : sequence.items) {
    Expr x = call.importer().expr(item, call.builder());
    rows.push_back(sequence.is_stacked ? x : unsqueeze(x, 0));
  }
  return rows.empty() ? Expr() : rows.size() == 1 ? rows[0] : concat(rows, 0);
}

Status build_stacked(Call& call, StackedLoop loop) {
  const GraphProto& body = call.importer().keep(std::move(loop.body));
  Call inner = call.call_on(loop.node, loop.inputs);
  RLX_TRY(build_loop_op(inner, body));
  inner.graph("body");
  RLX_TRY(inner.status());
  std::vector<OnnxValue>& results = inner.results();
  for (size_t i = 0; i < loop.kept.size(); i++) call.out(loop.kept[i], results[i]);
  for (size_t i = 0; i < loop.stacked.size(); i++) {
    OnnxValue sequence{.is_sequence = true, .is_stacked = true};
    OnnxValue& rows = sequence.items.emplace_back(results[loop.kept.size() + i]);
    bool is_front = loop.ends[i] == End::kFront;
    Expr before = rows_of(call, *call.value(2 + loop.stacked[i])), joined;
    if (before || is_front) joined = call.importer().expr(rows, call.builder());
    if (is_front) joined = call.op("flip", {joined}, {{"axes", Axes{0}}});
    if (before) {
      Expr both[] = {is_front ? joined : before, is_front ? before : joined};
      joined = concat(both, 0);
    }
    RLX_TRY(call.status());
    if (joined) rows.type = joined.type(), rows.value = joined.value();
    call.out(loop.stacked[i], sequence);
  }
  return {};
}

// Few trips of a known number are unrolled. Else sequences may be rows that the loop stacks. Where they are not, it is
// unrolled after all: known sizes of one trip may suffice where a body fails.
Status build_with_sequences(Call& call, const GraphProto& body) {
  constexpr int64_t kFewTrips = 64;
  const Sizes* most = call.sizes(0);
  bool is_known = most && most->items.size() == 1 && most->items[0].is_literal();
  bool is_short = is_known && most->items[0].literal() <= kFewTrips;
  Importer::Refusals before = call.importer().refusals();
  Status status = is_short ? unroll(call, body) : Status();
  if (is_short && !status.detail(kOpenCondition)) return status;
  call.importer().refusals() = before;
  if (auto loop = stacked_loop(call, body)) {
    if (build_stacked(call, std::move(*loop)).ok()) return {};
    call.importer().refusals() = std::move(before);
  }
  return is_short ? status : unroll(call, body);
}

// A body cannot have sequences, nor carries of another rank or stacked rows of another size at every trip: such a loop
// is unrolled.
void build_loop(Call& call) {
  const GraphProto* body = call.graph("body");
  if (!body) return;
  bool has_sequences = std::max<size_t>(call.inputs(), 2) < body->input.size();
  for (size_t i = 2; i < call.inputs(); i++) has_sequences |= !call.has(i) || call.value(i)->is_sequence;
  if (has_sequences) return call.fail(build_with_sequences(call, *body));
  Importer::Refusals before = call.importer().refusals();
  Status status = build_loop_op(call, *body);
  if (!status.detail(kUnrolledOnly)) return call.fail(status);
  call.importer().refusals() = std::move(before);
  call.fail(unroll(call, *body));
}

constexpr NodeKind kKinds[] = {
    {.op_type = "Loop", .build = build_loop, .control = true},
};

}  // namespace

std::span<const NodeKind> loop_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
