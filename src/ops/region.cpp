// SPDX-License-Identifier: Apache-2.0
// Elementwise regions: the body in place of the region is what it means (semantics.md B4).
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

}  // namespace rlx
