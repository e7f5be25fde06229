// SPDX-License-Identifier: Apache-2.0
// Non-maximum suppression: boxes in order of their scores, each kept unless it overlaps one that was kept before it.
#include <limits>

#include "ir/symbols.h"
#include "ops/expr.h"

namespace rlx {

// Component i of [..., 4] without its axis.
static Expr component(Expr boxes, int64_t i) {
  std::vector<Dim> dims(boxes.dims().begin(), boxes.dims().end() - 1);
  return reshape(slice(boxes, -1, i, i + 1), dims);
}

// Any form of boxes as [..., 4] of (y low, x low, y high, x high).
static Expr corners(Expr boxes, bool center) {
  Expr a = component(boxes, 0), b = component(boxes, 1), c = component(boxes, 2), d = component(boxes, 3);
  std::vector<Expr> columns;
  if (center)  // x, y, width, height
    columns = {b - d / 2.0, a - c / 2.0, b + d / 2.0, a + c / 2.0};
  else
    columns = {minimum(a, c), minimum(b, d), maximum(a, c), maximum(b, d)};
  for (Expr& column : columns) column = unsqueeze(column, -1);
  return concat(columns, -1);
}

static Expr area(Expr boxes) {
  return (component(boxes, 2) - component(boxes, 0)) * (component(boxes, 3) - component(boxes, 1));
}

// Whether boxes share more of their union than `iou`.
static Expr overlaps(Expr a, Expr b, double iou) {
  auto overlap = [&](int64_t low) {
    Expr end = minimum(component(a, low + 2), component(b, low + 2));
    return maximum(end - maximum(component(a, low), component(b, low)), 0);
  };
  Expr area_a = area(a), area_b = area(b), both = overlap(0) * overlap(1), all = area_a + area_b - both;
  Expr is_real = logical_and(logical_and(greater(area_a, 0), greater(area_b, 0)), greater(all, 0));
  return less(scalar_like(both, iou), where(is_real, both / where(is_real, all, 1), 0));
}

// One trip: (kept[B,C,N], count[B,C], i, boxes[B,C,N,4], good[B,C,N], most) -> kept and count after the decision on box
// i.
static Result<std::shared_ptr<const Graph>> body_of(const Graph& parent, const Expr& boxes, const Expr& good,
                                                    double iou) {
  auto body = std::make_shared<Graph>("", &parent.table());
  for (const Expr& operand : {boxes, good}) RLX_TRY(share_symbols(parent, operand.dims(), *body));
  Builder b(*body);
  std::vector<Dim> lines{boxes.dim(0), boxes.dim(1)};
  auto input = [&](const char* name, DType dtype, std::vector<Dim> dims) -> Result<Expr> {
    return b.wrap(RLX_TRY(body->add_input(name, dtype, std::move(dims))));
  };
  Expr kept = RLX_TRY(input("kept", DType::kBool, good.dims())), count = RLX_TRY(input("count", DType::kI64, lines));
  Expr i = RLX_TRY(input("i", DType::kI64, {})), all = RLX_TRY(input("boxes", boxes.dtype(), boxes.dims()));
  Expr may = RLX_TRY(input("good", DType::kBool, good.dims())), most = RLX_TRY(input("most", DType::kI64, {}));
  Expr here = unsqueeze(gather(all, i, 2), 2);
  Expr covered = reduce(logical_and(kept, overlaps(here, all, iou)), "max", {2}, KeepDims::kNo);
  Expr keeps = logical_and(logical_and(gather(may, i, 2), logical_not(covered)), less(count, most));
  Expr is_here = equal(iota(b, {1, 1, good.dim(2)}, 2, DType::kI64), i);
  Expr next = logical_or(kept, logical_and(is_here, unsqueeze(keeps, 2)));
  Expr total = count + cast(keeps, DType::kI64);
  RLX_TRY(b.status());
  RLX_TRY(body->add_output("kept", next.value()));
  RLX_TRY(body->add_output("count", total.value()));
  return std::shared_ptr<const Graph>(std::move(body));
}

// The indices (batch, class, box) of the kept boxes: batch and class from the row, the box from its place in the order.
static Expr named_boxes(Expr rows, Expr order) {
  Builder& b = rows.builder();
  std::vector<Dim> lo(3, 0), hi{0, 0, 1};  // rows of padding read a place, even if there is no box
  order = b.op(Op::kPad, {order}, {{"lo", lo}, {"hi", hi}});
  Expr index = maximum(rows, 0);
  Expr box = b.op(Op::kGatherNd, {order, index});
  Expr named = concat(std::array{slice(rows, 1, 0, 2), unsqueeze(box, 1)}, 1);
  return where(less(rows, 0), -1, named);
}

// Decides on boxes[B,N,4] one after another, in the order[B,C,N] of their scores.
Outputs decompose_keep_boxes(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr boxes = in[0], order = in[1], good = in[2], most = in[3];
  if (order.rank() != 3 || most.rank() != 0)
    return refuse(in, Code::kShape, "needs an order of rank 3, and one number");
  const Dim &batch = order.dim(0), &classes = order.dim(1), &n = order.dim(2);
  if (!require_shape(boxes, "boxes", {batch, n, 4})) return {};
  if (!require_shape(good, "good", {batch, classes, n})) return {};
  std::vector<Dim> dims{batch, classes, n, 4};
  Expr place = maximum(minimum(order, b.size(n, DType::kI64) - 1.0), 0);
  Expr ordered =
      b.op(Op::kGatherElements, {broadcast_to(unsqueeze(boxes, 1), dims), broadcast_to(unsqueeze(place, -1), dims)},
           {{"axis", int64_t{2}}});
  if (!b.status().ok()) return {};
  auto body = body_of(b.graph(), ordered, good, attrs.f64("iou"));
  if (!body.ok()) return b.fail(std::move(body).status()), Outputs();
  Expr none = broadcast_to(b.scalar(DType::kBool, 0), {batch, classes, n});
  Expr zeros = broadcast_to(b.scalar(DType::kI64, 0), {batch, classes});
  Outputs kept = b.ops(Op::kScan, {none, zeros, iota(b, {n}, 0, DType::kI64), ordered, good, most},
                       {{"body", *body}, {"n_carry", int64_t{2}}, {"n_xs", int64_t{1}}});
  if (!b.status().ok()) return {};
  return {kept[0]};
}

Outputs decompose_non_max_suppression(const Inputs& in, const Attrs& attrs) {
  Builder& b = in.builder();
  Expr boxes = in[0], scores = in[1];
  if (boxes.rank() != 3 || scores.rank() != 3) return refuse(in, Code::kShape, "boxes and scores need rank 3");
  if (!require_shape(boxes, "boxes", {scores.dim(0), scores.dim(2), 4})) return {};
  if (is_half(boxes.dtype())) boxes = cast(boxes, DType::kF32), scores = cast(scores, DType::kF32);
  const Dim &batch = scores.dim(0), &classes = scores.dim(1), &n = scores.dim(2), &most = attrs.dim("max_out");
  // All boxes that are not candidates have one key, so that sorting does not compare them further.
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (attrs.has("score")) scores = where(greater(scores, attrs.f64("score")), scores, kNever);
  Outputs sorted = b.ops(Op::kSort, {scores}, {{"descending", int64_t{1}}});
  Expr good = attrs.has("score") ? greater(sorted[0], attrs.f64("score"))
                                 : broadcast_to(b.scalar(DType::kBool, 1), {batch, classes, n});
  Dim limit = min(most, n);
  Expr kept = b.op(Op::kKeepBoxes, {corners(boxes, attrs.flag("center")), sorted[1], good, b.size(limit, DType::kI64)},
                   {{"iou", attrs.f64("iou")}});
  bool bounded = attrs.flag("bounded");
  NamedAttrs compact{{"max_count", batch * classes * (bounded ? most : limit)}, {"bounded", int64_t{bounded}}};
  if (attrs.has("symbol")) compact.emplace_back("symbol", attrs.str("symbol"));
  Outputs rows = b.ops(Op::kNonzero, std::array{kept}, compact);
  if (!b.status().ok()) return {};
  return {named_boxes(rows[0], sorted[1]), rows[1]};
}

}  // namespace rlx
