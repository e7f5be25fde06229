// SPDX-License-Identifier: Apache-2.0
// Losses over an axis of classes. An ignored label contributes nothing.
#include <utility>

#include "ops/expr.h"

namespace rlx {

// The choices of the labels, in the shape of the labels.
struct Chosen {
  Expr index;    // the class to read; an ignored label reads class 0
  Expr counted;  // which labels are not ignored; absent: all of them
  Expr weight;   // of each label's class; 0 for an ignored label; absent: all are 1
};

// A number as an index of the labels' dtype; absent if the dtype does not hold it, so that no label is it.
static Expr label_of(Expr labels, int64_t number) {
  if (labels.dtype() == DType::kI64) return labels.builder().size(number, DType::kI64);
  return std::in_range<int32_t>(number) ? scalar_like(labels, static_cast<double>(number)) : Expr();
}

// `x` has the classes along `axis`.
static std::optional<Chosen> chosen_by(Expr x, Expr labels, Expr class_weight, int64_t axis, const Attrs& attrs) {
  if (x.rank() == 0) return x.builder().fail(wrong_rank("the scores", "1 or more", 0)), std::nullopt;
  std::vector<Dim> dims = x.dims();
  dims.erase(dims.begin() + axis);
  if (!require_shape(labels, "labels", dims)) return std::nullopt;
  Chosen chosen{labels, {}, {}};
  if (Expr ignored = attrs.has("ignore") ? label_of(labels, attrs.i64("ignore")) : Expr()) {
    chosen.counted = not_equal(labels, ignored);
    chosen.index = where(chosen.counted, labels, 0);
  }
  if (!class_weight) return chosen;
  if (!require_shape(class_weight, "class_weight", {x.dim(axis)})) return std::nullopt;
  chosen.weight = gather(class_weight, chosen.index, 0);
  if (chosen.counted) chosen.weight = where(chosen.counted, chosen.weight, 0);
  return chosen;
}

// The elements of `x` that the labels choose along `axis`, in the shape of the labels.
static Expr picked(Expr x, const Chosen& chosen, int64_t axis) {
  Expr elements = x.builder().op(Op::kGatherElements, {x, unsqueeze(chosen.index, axis)}, {{"axis", axis}});
  return reshape(elements, chosen.index.dims());
}

// The mean is weighted by the labels that count; it is NaN if there are none.
static Expr reduced(Expr loss, const Chosen& chosen, const Attrs& attrs) {
  if (chosen.counted) loss = where(chosen.counted, loss, 0);
  if (attrs.is("reduction", "none")) return loss;
  Axes all = trailing_axes(0, loss.rank());
  Expr total = reduce(loss, "sum", all, KeepDims::kNo);
  if (attrs.is("reduction", "sum")) return total;
  Expr weight = chosen.weight;
  if (!weight && chosen.counted) weight = cast(chosen.counted, loss.dtype());
  Expr count = weight ? reduce(weight, "sum", all, KeepDims::kNo)
                      : loss.builder().size(element_count(chosen.index.dims()), loss.dtype());
  return total / count;
}

Outputs decompose_nll_loss(const Inputs& in, const Attrs& attrs) {
  int64_t axis = attrs.i64("axis");
  auto chosen = chosen_by(in[0], in[1], in[2], axis, attrs);
  if (!chosen) return {};
  Expr loss = -picked(in[0], *chosen, axis);
  return {reduced(chosen->weight ? loss * chosen->weight : loss, *chosen, attrs)};
}

// Smoothing moves a share of the weight of the label evenly to all classes.
Outputs decompose_softmax_cross_entropy(const Inputs& in, const Attrs& attrs) {
  int64_t axis = attrs.i64("axis");
  double smoothing = attrs.f64("smoothing");
  auto chosen = chosen_by(in[0], in[1], in[2], axis, attrs);
  if (!chosen) return {};
  Expr logp = in.builder().op(Op::kLogSoftmax, {in[0]}, {{"axis", axis}});
  Expr loss = -picked(logp, *chosen, axis);
  if (chosen->weight) loss = loss * chosen->weight;
  if (smoothing > 0) {
    Expr each = logp;
    std::vector<Dim> along_classes(logp.rank(), 1);
    along_classes[static_cast<size_t>(axis)] = logp.dim(axis);
    if (in[2]) each = each * reshape(in[2], along_classes);
    Expr classes = in.builder().size(logp.dim(axis), logp.dtype());
    loss = loss * (1 - smoothing) - reduce(each, "sum", {axis}, KeepDims::kNo) * (smoothing / classes);
  }
  return {reduced(loss, *chosen, attrs)};
}

// `d` is the gradient of each label's loss, before any reduction.
Outputs decompose_softmax_cross_entropy_grad(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr logits = in[0], d = in[2];
  int64_t axis = attrs.i64("axis");
  double smoothing = attrs.f64("smoothing");
  auto chosen = chosen_by(logits, in[1], {}, axis, attrs);
  if (!chosen || !require_shape(d, "d", chosen->index.dims())) return {};
  Expr target = b.op(Op::kOneHot, {chosen->index, scalar_like(logits, 1 - smoothing), scalar_like(logits, 0)},
                     {{"depth", logits.dim(axis)}, {"axis", axis}});
  if (smoothing > 0) target = target + smoothing / b.size(logits.dim(axis), logits.dtype());
  if (chosen->counted) d = where(chosen->counted, d, 0);
  return {(b.op(Op::kSoftmax, {logits}, {{"axis", axis}}) - target) * unsqueeze(d, axis)};
}

Outputs decompose_soft_cross_entropy(const Inputs& in, const Attrs& attrs) {
  int64_t axis = attrs.i64("axis");
  if (!require_shape(in[1], "target", in[0].dims())) return {};
  Expr logp = in.builder().op(Op::kLogSoftmax, {in[0]}, {{"axis", axis}});
  return {-reduce(in[1] * logp, "sum", {axis}, KeepDims::kNo)};
}

Outputs decompose_bce_with_logits(const Inputs& in, const Attrs&) {
  Expr x = in[0], target = in[1];
  return {maximum(x, 0) - x * target + log1p(exp(-abs(x)))};
}

}  // namespace rlx
