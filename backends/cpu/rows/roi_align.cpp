// SPDX-License-Identifier: Apache-2.0
// The row for roi_align over f32. Where boxes read more elements than an image has, a copy with the channels behind
// each other is made first.
#include "backends/cpu/kernels/roi_align.h"

#include "backends/cpu/kernels/movement.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

constexpr size_t kMostCopied = 64 << 20;

std::string_view refuse_roi_align(const KernelQuery& query) {
  if (query.type(0).dtype != DType::kF32 || query.type(1).dtype != DType::kF32) return "takes f32 only";
  DType image = query.type(2).dtype;
  if (image != DType::kI32 && image != DType::kI64) return "takes images of i32 or i64";
  for (size_t axis : {0, 2, 3})
    if (query.type(0).dims[axis].is(0)) return "there is no element";
  return query.node.attrs.i64("sampling") <= kMaxSampling ? "" : "takes few samples only";
}

size_t roi_align_scratch(const Node&, std::span<const Dims> upper) {
  double bytes = largest_count(upper[0]) * sizeof(float);
  return bytes > double{kMostCopied} ? kMostCopied : static_cast<size_t>(bytes);
}

// How many elements of a channel are read.
double corners_of(const RoiAlignArgs& args) {
  return 4 * static_cast<double>(args.count * args.rows * args.columns) *
         static_cast<double>(args.sampling * args.sampling);
}
bool repays_copy(const RoiAlignArgs& args, const View& x) {
  return args.channels > 1 && x.count() <= static_cast<int64_t>(kMostCopied / sizeof(float)) &&
         corners_of(args) > static_cast<double>(args.items * args.height * args.width);
}

// Puts the channels last.
CopyArgs copy_of_images(RoiAlignArgs& args, float* to) {
  CopyArgs copy;
  copy.from = reinterpret_cast<const std::byte*>(args.x);
  copy.to = reinterpret_cast<std::byte*>(to);
  copy.element = sizeof(float);
  copy.rank = 3;
  const int64_t plane = args.height * args.width, size = copy.element;
  copy.dims[0] = args.items, copy.dims[1] = plane, copy.dims[2] = args.channels;
  copy.strides[0] = args.item * size, copy.strides[1] = size, copy.strides[2] = plane * size;
  args.x = to;
  args.channel = 1, args.column = args.channels, args.row = args.width * args.channels;
  return copy;
}

void encode_roi_align(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &x = view.in[0], &image = view.in[2];
  const Attrs& attrs = view.node.attrs;
  RoiAlignArgs args;
  args.x = x.as<float>();
  args.items = x.dims[0], args.channels = x.dims[1], args.height = x.dims[2], args.width = x.dims[3];
  args.column = 1, args.row = args.width, args.channel = args.height * args.width;
  args.item = args.channels * args.channel;
  args.boxes = view.in[1].as<float>();
  args.image = image.data;
  args.image_is_i64 = image.dtype == DType::kI64;
  args.y = view.out[0].as<float>();
  args.count = image.dims[0];
  if (x.count() == 0) args.height = 0;  // then no sample is inside
  args.rows = attrs.i64("out_h"), args.columns = attrs.i64("out_w");
  args.sampling = attrs.i64("sampling");
  args.scale = attrs.f64("scale");
  args.half_pixel = attrs.flag("half_pixel");
  args.is_max = attrs.is("mode", "max");
  const auto& align = caps.fns.roi_align.align;
  double terms = corners_of(args) * static_cast<double>(args.channels);
  if (!repays_copy(args, x)) return load(block, align, args, 100 + terms, launch);
  CopyArgs copy = copy_of_images(args, reinterpret_cast<float*>(view.scratch));
  load(block, copy_loop(), copy, 30 + 0.4 * static_cast<double>(x.count()), launch);
  load_after<CopyArgs>(block, align, args, 100 + 0.1 * terms, launch);
}

}  // namespace

void add_roi_align_rows(RowsByOp& by_op) {
  add(by_op, native<CopyArgs, RoiAlignArgs>(Op::kRoiAlign, "roi_align_f32", refuse_roi_align, encode_roi_align)
                 .scratch(roi_align_scratch));
}

}  // namespace rlx::cpu
