// SPDX-License-Identifier: Apache-2.0
// The row for reduce_window as in pooling: windows along the last axes, at most three, over f32, or over 8-bit numbers
// for max and min.
#include "backends/cpu/kernels/window.h"

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

bool is_trivial(const Attrs& attrs, size_t axis) {
  return attrs.i64s("window")[axis] == 1 && attrs.i64s("strides")[axis] == 1 && attrs.dims("pad_lo")[axis].is(0) &&
         attrs.dims("pad_hi")[axis].is(0);
}

ReduceFn fold_of(const Attrs& attrs) {
  return attrs.is("fn", "max") ? ReduceFn::kMax : attrs.is("fn", "min") ? ReduceFn::kMin : ReduceFn::kSum;
}

std::string_view refuse_window(const KernelQuery& query) {
  const Attrs& attrs = query.node.attrs;
  if (!all_f32(query) && (!is_eight_bit(query.type(0).dtype) || fold_of(attrs) == ReduceFn::kSum))
    return "takes f32, and the largest or least of 8-bit numbers";
  size_t rank = query.type(0).rank();
  if (rank == 0) return "x is a scalar";
  int64_t elements = 1;
  for (size_t i = 0; i < rank; i++) {
    if (i + kConvAxes < rank && !is_trivial(attrs, i)) return "windows move along more than three axes";
    elements *= std::min(attrs.i64s("window")[i], kMostSummed + 1);
    if (elements > kMostSummed && fold_of(attrs) == ReduceFn::kSum) return "a window has too many elements";
  }
  ConvAxis last{.taps = attrs.i64s("window").back(),
                .stride = attrs.i64s("strides").back(),
                .dilation = attrs.i64s("dilation").back()};
  return fits_direct(last) ? "" : "windows reach too far";
}

void encode_window(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &x = view.in[0], &y = view.out[0];
  const Attrs& attrs = view.node.attrs;
  WindowArgs args;
  args.x = x.as<const std::byte>();
  args.y = y.as<std::byte>();
  if (is_eight_bit(x.dtype)) args.type = x.dtype == DType::kI8 ? WindowArgs::kI8 : WindowArgs::kU8;
  args.fn = fold_of(attrs);
  size_t rank = x.dims.size(), axes = std::min<size_t>(rank, kConvAxes);
  while (axes > 1 && is_trivial(attrs, rank - axes)) axes--;  // a plane more for each of its elements
  for (size_t i = 0; i < rank - axes; i++) args.planes *= x.dims[i];
  double taps = 1;
  for (size_t i = rank - axes; i < rank; i++) {
    args.axes[kConvAxes - rank + i] = {.size = x.dims[i],
                                       .out = y.dims[i],
                                       .taps = attrs.i64s("window")[i],
                                       .stride = attrs.i64s("strides")[i],
                                       .dilation = attrs.i64s("dilation")[i],
                                       .lo = size_of(view, attrs.dims("pad_lo")[i])};
    taps *= static_cast<double>(attrs.i64s("window")[i]);
  }
  load(block, caps.fns.window.fold, args, 100 + 0.2 * taps * static_cast<double>(y.count()), launch);
}

}  // namespace

void add_window_rows(RowsByOp& by_op) {
  add(by_op, native<WindowArgs>(Op::kReduceWindow, "window_f32", refuse_window, encode_window));
}

}  // namespace rlx::cpu
