// SPDX-License-Identifier: Apache-2.0
// ONNX's losses, whose class axis is the second, and its steps of training.
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

// ---- steps of training ----

// Inputs: a rate, the number of steps made, then lists of equal length: params, gradients and states.
struct Step {
  Expr rate, steps;  // the steps in the dtype of the rate
  size_t count = 0;  // of params
  double pull = 0;   // of a param to 0, as a part of its gradient
};

Step step_of(Call& call, size_t lists) {
  Expr rate = reshape(call.in(0), {}), steps = cast(reshape(call.in(1), {}), rate.valid() ? rate.dtype() : DType::kF32);
  if (call.inputs() < 2 + lists || (call.inputs() - 2) % lists != 0)
    call.fail(Code::kData, format("its inputs after the second are not {} lists of equal length", lists));
  for (size_t i = 0; i < call.inputs(); i++)
    if (!call.has(i)) call.fail(Code::kData, format("its input {} is missing", i));
  return {rate, steps, (call.inputs() - 2) / lists, call.f64("norm_coefficient", 0)};
}

// Element i of a list of inputs, counted from the params.
Expr item(Call& call, const Step& step, size_t list, size_t i) {
  return call.in(2 + list * step.count + i);
}

Expr pulled_gradient(Call& call, const Step& step, size_t i) {
  return item(call, step, 0, i) * step.pull + item(call, step, 1, i);
}

void build_adagrad(Call& call) {
  double decay = call.f64("decay_factor", 0), eps = call.f64("epsilon", 1e-6);
  Step step = step_of(call, 3);
  if (!call.status().ok()) return;
  Expr rate = step.rate / (step.steps * decay + 1.0);
  for (size_t i = 0; i < step.count; i++) {
    Expr g = pulled_gradient(call, step, i), squares = item(call, step, 2, i) + g * g;
    call.out(i, item(call, step, 0, i) - rate * g / (sqrt(squares) + eps));
    call.out(step.count + i, squares);
  }
}

// Until the first step is made, means are not corrected for their start at 0.
void build_adam(Call& call) {
  double alpha = call.f64("alpha", 0.9), beta = call.f64("beta", 0.999), eps = call.f64("epsilon", 1e-6);
  double shrink = 1 - call.f64("norm_coefficient_post", 0);
  Step step = step_of(call, 4);
  if (!call.status().ok()) return;
  auto left = [&](double base) { return 1.0 - binary(Op::kPow, scalar_like(step.steps, base), step.steps); };
  Expr rate = where(equal(step.steps, 0), step.rate, step.rate * sqrt(left(beta)) / left(alpha));
  for (size_t i = 0; i < step.count; i++) {
    Expr g = pulled_gradient(call, step, i), mean = item(call, step, 2, i) * alpha + g * (1 - alpha);
    Expr squares = item(call, step, 3, i) * beta + g * g * (1 - beta);
    call.out(i, (item(call, step, 0, i) - rate * mean / (sqrt(squares) + eps)) * shrink);
    call.out(step.count + i, mean);
    call.out(2 * step.count + i, squares);
  }
}

// The first gradient counts whole.
void build_momentum(Call& call) {
  double alpha = call.f64("alpha", 0), beta = call.f64("beta", 0);
  std::string_view mode = call.text("mode", "standard");
  if (mode != "standard" && mode != "nesterov") return call.fail(Code::kData, "'mode' is " + std::string(mode));
  Step step = step_of(call, 3);
  if (!call.status().ok()) return;
  Expr share = where(equal(step.steps, 0), 1, scalar_like(step.steps, beta));
  for (size_t i = 0; i < step.count; i++) {
    Expr g = pulled_gradient(call, step, i), moving = item(call, step, 2, i) * alpha + share * g;
    call.out(i, item(call, step, 0, i) - step.rate * (mode == "standard" ? moving : g + moving * alpha));
    call.out(step.count + i, moving);
  }
}

constexpr std::string_view kTraining = "ai.onnx.preview.training";
constexpr NodeKind kKinds[] = {
    {"NegativeLogLikelihoodLoss", build_nll},
    {"SoftmaxCrossEntropyLoss", build_cross_entropy},
    {"Adagrad", build_adagrad, "", nullptr, {}, kTraining},
    {"Adam", build_adam, "", nullptr, {}, kTraining},
    {"Momentum", build_momentum, "", nullptr, {}, kTraining},
};

}  // namespace

std::span<const NodeKind> loss_kinds() {
  return kKinds;
}

}  // namespace rlx::onnx
