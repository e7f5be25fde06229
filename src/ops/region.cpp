// SPDX-License-Identifier: Apache-2.0
// Elementwise regions: a region means its body, inlined (semantics.md B4).
#include <algorithm>

#include "ops/expr.h"

namespace rlx {

Outputs decompose_elementwise_region(const Inputs& in, const Attrs& attrs) {
  const Graph& body = *attrs.graph("body");
  Builder& b = in.builder();
  Outputs none(body.outputs().size(), b.wrap(kInvalid));
  auto refuse = [&](Code code, std::string message) {
    b.fail(Status(code, std::move(message)));
    return none;
  };
  if (body.inputs().size() != in.size())
    return refuse(Code::kInvalidArgument,
                  format("the body has {} inputs, the region {}", body.inputs().size(), in.size()));
  std::vector<Outputs> made(body.nodes().size());
  for (size_t i = 0; i < in.size(); i++) {
    DType declared = body.node(body.inputs()[i]).out[0].dtype;
    if (in[i].dtype() != declared)
      return refuse(Code::kDtype,
                    format("input {} of the body is {}, that of the region {}", i, declared, in[i].dtype()));
    made[body.inputs()[i]] = {in[i]};
  }
  for (uint32_t i = 0; i < body.nodes().size(); i++) {
    const Node& node = body.node(i);
    if (!made[i].empty()) continue;
    if (node.op == Op::kConstant) {
      made[i] = {b.constant(node.attrs.tensor("value"))};
      continue;
    }
    if (!body.info(node).is(kElementwise))
      return refuse(Code::kOption, "the body may not hold " + body.describe(i) + ": it is not elementwise");
    std::vector<Expr> operands;
    for (Value value : node.in) operands.push_back(present(value) ? made[value.node][value.output] : Expr());
    made[i] = b.add(body.info(node), operands, node.attrs, node.name);
  }
  Outputs outputs;
  for (const GraphOutput& output : body.outputs()) outputs.push_back(made[output.value.node][output.value.output]);
  return outputs;
}

// Whether the body's inferred types hold for these inputs. Then nothing has to be inferred again.
static bool is_as_declared(const InferArgs& args, const Graph& body) {
  bool fits = body.inputs().size() == args.in.size() && body.guards().empty();
  for (size_t i = 0; fits && i < args.in.size(); i++) fits = *args.in[i] == body.node(body.inputs()[i]).out[0];
  for (const auto& [symbol, range] : body.symbols()) {
    Interval around = args.graph.symbol_range(symbol);
    fits &= args.graph.has_symbol(symbol) && around.lo >= range.lo && around.hi <= range.hi;
  }
  return fits && std::all_of(body.nodes().begin(), body.nodes().end(), [&](const Node& node) {
           return node.op == Op::kInput || node.op == Op::kConstant || body.info(node).is(kElementwise);
         });
}

Status infer_elementwise_region(InferArgs& args) {
  const Graph& body = *args.attrs.graph("body");
  if (!is_as_declared(args, body)) return infer_composite(args);
  args.out.clear();
  for (const GraphOutput& output : body.outputs()) args.out.push_back(body.type(output.value));
  return {};
}

}  // namespace rlx
