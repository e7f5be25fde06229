// SPDX-License-Identifier: Apache-2.0
// ONNX node kinds that work on the import itself: literals, branches, loops.
#include <algorithm>

#include "import/onnx/call.h"
#include "import/onnx/importer.h"

namespace rlx::onnx {

namespace {

template <class T>
Tensor list_tensor(Call& call, DType dtype, const std::vector<T>& values, bool is_scalar) {
  int64_t dims[] = {static_cast<int64_t>(values.size())};
  auto tensor = Tensor::create(dtype, std::span<const int64_t>(dims, is_scalar ? 0 : 1));
  if (!tensor.ok()) return call.fail(tensor.status().code(), std::string(tensor.status().message())), Tensor();
  std::copy(values.begin(), values.end(), tensor->as<T>());
  return *tensor;
}

void build_constant(Call& call) {
  if (const TensorProto* proto = call.tensor("value")) {
    auto tensor = call.importer().read(*proto);
    if (!tensor.ok()) return call.fail(tensor.status().code(), std::string(tensor.status().message()));
    return call.out(0, *tensor);
  }
  if (call.has_attr("value_int"))
    return call.out(0, list_tensor<int64_t>(call, DType::kI64, {call.i64("value_int", 0)}, true));
  if (call.has_attr("value_ints")) return call.out(0, list_tensor(call, DType::kI64, call.i64s("value_ints"), false));
  bool is_scalar = call.has_attr("value_float");
  if (!is_scalar && !call.has_attr("value_floats"))
    return call.fail(Code::kUnsupported, "a constant of strings, or sparse");
  std::vector<double> wide = is_scalar ? std::vector<double>{call.f64("value_float", 0)} : call.f64s("value_floats");
  call.out(0, list_tensor(call, DType::kF32, std::vector<float>(wide.begin(), wide.end()), is_scalar));
}

// Exporters write the choice of a code path as an If whose condition follows from sizes or literals.
void take_branch(Call& call, const GraphProto& branch) {
  auto results = call.importer().inline_graph(branch);
  if (!results.ok()) return call.fail(results.status().code(), std::string(results.status().message()));
  if (results->size() != call.outputs()) return call.fail(Code::kData, "the branch has another number of outputs");
  for (size_t i = 0; i < results->size(); i++) call.out(i, (*results)[i]);
}

void fail(Call& call, const Status& status) {
  if (!status.ok()) call.fail(status.code(), std::string(status.message()));
}

void add_captures(Call& call, const BodyGraph& body, std::vector<Expr>& in) {
  for (OnnxValue* value : body.captures) in.push_back(call.importer().expr(*value, call.builder()));
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
  Outputs results = call.ops("if", in, {{"then", RLX_TRY(then.finish())}, {"else", RLX_TRY(otherwise.finish())}});
  for (size_t i = 0; i < std::min(results.size(), call.outputs()); i++) call.out(i, results[i]);
  return {};
}

void build_if(Call& call) {
  const GraphProto *yes = call.graph("then_branch"), *no = call.graph("else_branch");
  if (!yes || !no) return;
  if (!call.sizes(0)) return fail(call, build_branches(call, *yes, *no));
  std::vector<int64_t> condition = call.numbers(0, "cond");
  if (!call.status().ok() || condition.size() != 1) return call.fail(Code::kData, "the condition is not one bool");
  take_branch(call, condition[0] ? *yes : *no);
}

// ---- Loop: the number of the trip and the condition are carries, the most trips an input that does not vary ----

// Whether the condition after a trip is what it was before, or true.
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
  RLX_TRY(Status(b.status()));
  RLX_TRY(graph.add_output("more", more.value()));
  return std::make_shared<const Graph>(std::move(graph));
}

Status build_trips(Call& call, const GraphProto& proto) {
  std::vector<ValueType> types{{DType::kI64, {}}, {DType::kBool, {}}};
  for (size_t i = 2; i < call.inputs(); i++) types.push_back(call.type(i));
  BodyGraph body = RLX_TRY(call.importer().body_graph(proto, types, {}));
  size_t carries = types.size();
  if (body.outputs.size() + 1 < carries) return Status(Code::kData, "the body has too few outputs");
  size_t stacked = body.outputs.size() + 1 - carries;
  bool stops = call.has(1) && !(call.sizes(1) && call.numbers(1, "cond") == std::vector<int64_t>{1});
  bool is_counted = call.has(0) && call.sizes(0) && !stops && goes_on(body);
  if (stacked && !is_counted)
    return Status(Code::kUnsupported, "a loop with scan outputs whose number of trips is not known before it");
  Builder inner(body.graph);
  Builder& b = call.builder();
  Expr first_trip = b.constant(list_tensor<int64_t>(call, DType::kI64, {0}, true));
  std::vector<Expr> in{first_trip,
                       call.has(1) ? reshape(call.in(1), std::vector<Dim>()) : less_equal(first_trip, first_trip)};
  for (size_t i = 2; i < call.inputs(); i++) in.push_back(call.in(i));
  add_captures(call, body, in);
  Expr next = inner.wrap({body.graph.inputs()[0], 0}) + 1.0;
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

void build_loop(Call& call) {
  const GraphProto* body = call.graph("body");
  if (body) fail(call, build_trips(call, *body));
}

// ---- Scan ----

bool all_are(const std::vector<int64_t>& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [=](int64_t item) { return item == value; });
}

Status build_slices(Call& call, const GraphProto& proto) {
  auto xs = static_cast<size_t>(call.i64("num_scan_inputs", 0));
  if (xs < 1 || xs > call.inputs()) return Status(Code::kData, "num_scan_inputs is not that of its inputs");
  std::vector<int64_t> reads = call.i64s("scan_input_directions"), writes = call.i64s("scan_output_directions");
  bool reverse = !reads.empty() && reads[0] == 1;
  if (!all_are(call.i64s("scan_input_axes"), 0) || !all_are(call.i64s("scan_output_axes"), 0))
    return Status(Code::kUnsupported, "a scan along another axis than the first");
  size_t carries = call.inputs() - xs;
  bool stacks = proto.output.size() > carries;
  if (!all_are(reads, reverse) || (stacks && (!all_are(writes, reverse) || (writes.empty() && reverse))))
    return Status(Code::kUnsupported, "a scan in several directions");
  std::vector<ValueType> types;
  std::vector<Expr> in;
  for (size_t i = 0; i < call.inputs(); i++) {
    types.push_back(call.type(i));
    in.push_back(call.in(i));
    if (i < carries) continue;
    if (types[i].rank() == 0) return Status(Code::kData, "a scan over a scalar");
    types[i].dims.erase(types[i].dims.begin());
  }
  BodyGraph body = RLX_TRY(call.importer().body_graph(proto, types, {}));
  add_captures(call, body, in);
  Outputs results = call.ops("scan", in,
                             {{"n_carry", static_cast<int64_t>(carries)},
                              {"n_xs", static_cast<int64_t>(xs)},
                              {"reverse", int64_t{reverse}},
                              {"body", RLX_TRY(body.finish())}});
  for (size_t i = 0; i < std::min(results.size(), call.outputs()); i++) call.out(i, results[i]);
  return {};
}

void build_scan(Call& call) {
  const GraphProto* body = call.graph("body");
  if (call.opset() < 9) return call.fail(Code::kUnsupported, "a scan with a batch axis");
  if (body) fail(call, build_slices(call, *body));
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
