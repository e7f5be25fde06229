// SPDX-License-Identifier: Apache-2.0
// The row for keep_boxes: what non_max_suppression is made of.
#include "backends/cpu/kernels/keep_boxes.h"

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_keep_boxes(const KernelQuery& query) {
  DType dtype = query.type(0).dtype;
  return dtype == DType::kF32 || dtype == DType::kF64 ? "" : "takes f32 and f64 only";
}

void encode_keep_boxes(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View& order = view.in[1];
  KeepBoxesArgs args;
  args.boxes = view.in[0].data;
  args.dtype = view.in[0].dtype;
  args.order = order.as<int64_t>();
  args.good = view.in[2].as<uint8_t>();
  args.most = view.in[3].as<int64_t>();
  args.kept = view.out[0].as<uint8_t>();
  args.iou = view.node.attrs.f64("iou");
  args.batch = order.dims[0], args.classes = order.dims[1], args.n = order.dims[2];
  load(block, keep_boxes_loop(), args, 50 + 20 * static_cast<double>(order.count()), launch);
}

}  // namespace

void add_keep_boxes_rows(RowsByOp& by_op) {
  add(by_op, loops<KeepBoxesArgs>(Op::kKeepBoxes, "keep_boxes", refuse_keep_boxes, encode_keep_boxes));
}

}  // namespace rlx::cpu
