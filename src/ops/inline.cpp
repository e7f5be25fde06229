// SPDX-License-Identifier: Apache-2.0
#include "ops/inline.h"

#include "ir/with_dims.h"

namespace rlx {

Status check_inlinable(const Graph& body) {
  if (!body.params().empty())
    return Status(Code::kUnsupported,
                  "it has the param '" + body.leaf_name(body.params()[0]) + "': it can read only its inputs")
        .with("value", body.leaf_name(body.params()[0]));
  for (const DecidedSize& size : decided_sizes(body))
    return Status(Code::kUnsupported, "it finds the size '" + size.symbol + "' in the run").with("value", size.symbol);
  return {};
}

static Status add_guards(Graph& graph, const Graph& body) {
  for (const Guard& guard : body.guards())
    if (!guard.is_derived)
      RLX_TRY(graph.add_guard({guard.relation, guard.a, guard.b, guard.where.empty() ? "body" : guard.where}));
  return {};
}

Expr as_body_input(const Graph& body, size_t input, Expr operand) {
  const std::vector<Dim>& formal = body.node(body.inputs()[input]).out[0].dims;
  std::vector<Dim> dims = operand.dims();
  for (size_t axis = 0; axis < dims.size(); axis++)
    if (formal[axis].is(1)) dims[axis] = 1;
  return dims == operand.dims() ? operand : reshape(operand, dims);
}

Outputs inlined(Builder& builder, const Graph& body, std::span<const Expr> in) {
  if (Status status = add_guards(builder.graph(), body); !status.ok())
    return builder.fail(std::move(status)), Outputs();
  std::vector<Outputs> made(body.nodes().size());
  auto value = [&](Value it) { return present(it) ? made[it.node][it.output] : Expr(); };
  for (size_t i = 0; i < in.size(); i++) made[body.inputs()[i]] = {as_body_input(body, i, in[i])};
  for (uint32_t index = 0; index < made.size(); index++) {
    const Node& node = body.node(index);
    if (!made[index].empty()) continue;
    std::vector<Expr> operands;
    for (Value it : node.in) operands.push_back(value(it));
    if (node.op == Op::kConstant)
      made[index] = {builder.constant(node.attrs.tensor("value"))};
    else if (node.op == Op::kParam)
      made[index] = {builder.wrap(*builder.graph().find_param(body.leaf_name(index)))};
    else
      made[index] = builder.add(builder.graph().info(node.op), operands, node.attrs, node.name);
    if (!builder.status().ok()) return {};
  }
  Outputs outputs;
  for (const GraphOutput& output : body.outputs()) outputs.push_back(value(output.value));
  return outputs;
}

// The size of each symbol of the body: that of the first axis which is this symbol alone.
static SymbolDims sizes_at(const Graph& body, std::span<const Expr> in) {
  SymbolDims sizes;
  for (size_t i = 0; i < in.size(); i++) {
    const std::vector<Dim>& formal = body.node(body.inputs()[i]).out[0].dims;
    for (size_t axis = 0; axis < formal.size(); axis++)
      if (const std::string* symbol = formal[axis].symbol_name()) sizes.emplace(*symbol, in[i].dims()[axis]);
  }
  return sizes;
}

static Status check_operands(const Graph& body, std::span<const Expr> in) {
  if (in.size() != body.inputs().size())
    return Status(Code::kInvalidArgument,
                  format("the body takes {}, not {}", plural(body.inputs().size(), "input"), in.size()))
        .with("expected", std::to_string(body.inputs().size()))
        .with("got", std::to_string(in.size()));
  for (size_t i = 0; i < in.size(); i++) {
    const ValueType& formal = body.node(body.inputs()[i]).out[0];
    if (in[i] && formal.dtype == in[i].dtype() && formal.rank() == in[i].rank()) continue;
    std::string got = in[i] ? text_of(in[i].type()) : "absent";
    return Status(in[i] && formal.dtype == in[i].dtype() ? Code::kShape : Code::kDtype,
                  format("the body's input '{}' is {}, not {}", body.leaf_name(body.inputs()[i]), formal, got))
        .with("expected", text_of(formal))
        .with("got", got);
  }
  return {};
}

// Requires what the body has declared about its symbols and its inputs.
static Status require_sizes(Graph& graph, const Graph& body, const SymbolDims& sizes, std::span<const Expr> in) {
  for (const auto& [symbol, size] : sizes)
    RLX_TRY(require_range(graph, size, body.symbol_range(symbol), "the body's size '" + symbol + "'"));
  for (size_t i = 0; i < in.size(); i++) {
    const std::string& name = body.leaf_name(body.inputs()[i]);
    const std::vector<Dim>& formal = body.node(body.inputs()[i]).out[0].dims;
    for (size_t axis = 0; axis < formal.size(); axis++)
      RLX_TRY(graph.add_guard({Guard::kEqual, with_dims(formal[axis], sizes), in[i].dims()[axis],
                               format("the body's input '{}', axis {}", name, axis)}));
  }
  return {};
}

Outputs inlined_at_inputs(Builder& builder, const Graph& body, std::span<const Expr> in) {
  auto made = [&]() -> Result<Outputs> {
    RLX_TRY(check_operands(body, in));
    SymbolDims sizes = sizes_at(body, in);
    RLX_TRY(require_sizes(builder.graph(), body, sizes, in));
    Graph fitted = RLX_TRY(with_dims(body, sizes, &builder.graph()));
    return inlined(builder, fitted, in);
  }();
  if (!made.ok()) return builder.fail(std::move(made).status()), Outputs();
  return *std::move(made);
}

}  // namespace rlx
