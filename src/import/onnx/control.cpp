// SPDX-License-Identifier: Apache-2.0
// Constant, If, and the bodies of loops. Constants and branches affect the import itself.
#include "import/onnx/control.h"

#include <algorithm>

namespace rlx::onnx {

void add_captures(Call& call, const BodyGraph& body, std::vector<Expr>& in) {
  for (OnnxValue* value : body.captures) in.push_back(call.importer().expr(*value, call.builder()));
}

Result<BodyGraph> loop_body(Call& call, const GraphProto& proto, std::vector<ValueType>& types,
                            const Carries& carries) {
  size_t symbols = 0;
  auto next_symbol = [&] {
    std::string symbol;
    do symbol = "carry." + std::to_string(symbols++);
    while (call.builder().graph().has_symbol(symbol));
    return symbol;
  };
  while (true) {
    BodyGraph body = RLX_TRY(call.importer().body_graph(proto, types, {}));
    if (body.outputs.size() < carries.first_out + carries.count)
      return Status(Code::kData, "the body has too few outputs");
    if (carries.are_steady) return body;
    bool is_settled = true;
    for (size_t i = 0; i < carries.count; i++) {
      ValueType& before = types[carries.first_in + i];
      const ValueType& after = body.graph.type(body.outputs[carries.first_out + i]);
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

Status check_rows(const BodyGraph& body, size_t first, const Graph& around) {
  bool grows = false;
  for (size_t i = first; i < body.outputs.size(); i++)
    for (const Dim& dim : body.graph.type(body.outputs[i]).dims)
      visit_symbols(dim, [&](const std::string& name) { grows |= !around.has_symbol(name); });
  if (!grows) return {};
  return Status(Code::kUnsupported, "rows of a size that changes from trip to trip").with(kUnrolledOnly, "1");
}

namespace {

constexpr int32_t kStringElements = 8;  // an ElementType

// Elements of a type that we lack are an error only where a node reads them, as those of an initializer are.
void give_unread(Call& call, TensorProto proto) {
  proto.name = call.node().output[0];
  GraphProto holder;
  holder.initializer.push_back(std::move(proto));
  call.out(0, OnnxValue{.initializer = call.importer().keep(std::move(holder)).initializer.data()});
}

void build_constant(Call& call) {
  auto give = [&](const auto& proto) {
    auto tensor = call.importer().read(proto);
    tensor.ok() ? call.out(0, *tensor) : call.fail(tensor.status());
  };
  if (const TensorProto* proto = call.tensor("value")) {
    if (dtype_of(proto->data_type).status().code() == Code::kUnsupported) return give_unread(call, *proto);
    return give(*proto), call.set_bits(0, bits_of(proto->data_type));
  }
  if (const SparseTensorProto* proto = call.sparse_tensor("sparse_value"))
    return give(*proto), call.set_bits(0, bits_of(proto->values.data_type));
  if (call.has_attr("value_int"))
    return call.out(0, literal<int64_t>(call, DType::kI64, {call.i64("value_int", 0)}, 0));
  if (call.has_attr("value_ints")) return call.out(0, literal(call, DType::kI64, call.i64s("value_ints"), 1));
  bool is_scalar = call.has_attr("value_float");
  if (!is_scalar && !call.has_attr("value_floats")) {
    for (const char* strings : {"value_string", "value_strings"}) call.ignore(strings);
    return give_unread(call, {.data_type = kStringElements});
  }
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
  for (size_t i = 0; i < std::min(results.size(), call.outputs()); i++) {
    call.out(i, results[i]);
    call.set_bits(i, then.bits[i]);
  }
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

constexpr NodeKind kKinds[] = {
    {.op_type = "Constant", .build = build_constant, .control = true},
    {.op_type = "If", .build = build_if, .control = true},
};

}  // namespace

std::span<const NodeKind> control_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
