// SPDX-License-Identifier: Apache-2.0
// ONNX's losses: the class axis is the second.
#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

// Their attributes equal ours, except for the class axis.
void put_loss(Call& call, std::string_view op) {
  std::string reduction(call.text("reduction", "mean"));
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return call.fail(Code::kData, "'reduction' is " + reduction);
  NamedAttrs attrs{{"axis", int64_t{1}}, {"reduction", reduction}};
  if (call.has_attr("ignore_index")) attrs.emplace_back("ignore", call.i64("ignore_index", 0));
  call.out(0, call.op(op, {call.in(0), call.in(1), call.in(2)}, attrs));
}

void build_nll(Call& call) {
  put_loss(call, "nll_loss");
}

void build_cross_entropy(Call& call) {
  put_loss(call, "softmax_cross_entropy");
  call.out(1, call.op("log_softmax", {call.in(0)}, {{"axis", int64_t{1}}}));
}

constexpr NodeKind kKinds[] = {
    {"NegativeLogLikelihoodLoss", build_nll},
    {"SoftmaxCrossEntropyLoss", build_cross_entropy},
};

}  // namespace

std::span<const NodeKind> loss_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
