// SPDX-License-Identifier: Apache-2.0
// ONNX's losses: the class axis is the second.
#include "import/onnx/call.h"

namespace rlx::onnx {

namespace {

// The weight of each label; a label that is to be ignored has none.
struct Labels {
  Expr index, weight;  // weight: absent where each is 1
};

Labels labels_of(Call& call, Expr logp, Expr labels, Expr class_weight) {
  Labels found{cast(labels, DType::kI64), {}};
  Expr counted;
  if (call.has_attr("ignore_index")) {
    counted = not_equal(found.index, static_cast<double>(call.i64("ignore_index", 0)));
    found.index = where(counted, found.index, 0);
  }
  if (class_weight) found.weight = gather(class_weight, found.index, 0);
  if (counted) found.weight = found.weight ? where(counted, found.weight, 0) : cast(counted, logp.dtype());
  return found;
}

void put_loss(Call& call, Expr logp, Expr labels, Expr class_weight) {
  Labels chosen = labels_of(call, logp, labels, class_weight);
  std::string reduction(call.text("reduction", "mean"));
  if (!chosen.index.valid() || !logp.valid()) return;
  Expr loss = -reshape(call.op("gather_elements", {logp, unsqueeze(chosen.index, 1)}, {{"axis", int64_t{1}}}),
                       chosen.index.dims());
  if (chosen.weight) loss = where(equal(chosen.weight, 0), 0, loss * chosen.weight);
  Axes all = trailing_axes(0, chosen.index.rank());
  if (reduction == "none") return call.out(0, loss);
  if (reduction != "sum" && reduction != "mean") call.fail(Code::kData, "'reduction' is " + reduction);
  Expr total = reduce(loss, "sum", all, false);
  if (reduction == "sum") return call.out(0, total);
  Expr count = chosen.weight ? reduce(chosen.weight, "sum", all, false)
                             : cast(call.builder().size(element_count(chosen.index.dims()), DType::kI64), logp.dtype());
  call.out(0, total / count);
}

void build_nll(Call& call) {
  put_loss(call, call.in(0), call.in(1), call.in(2));
}

void build_cross_entropy(Call& call) {
  Expr logp = call.op("log_softmax", {call.in(0)}, {{"axis", int64_t{1}}});
  put_loss(call, logp, call.in(1), call.in(2));
  call.out(1, logp);
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
