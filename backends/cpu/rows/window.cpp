// SPDX-License-Identifier: Apache-2.0
// Rows for reduce_window as in pooling: windows along the last axes, at most three, over f32, or over 8-bit numbers
// for max and min; and for where the extremes of f32 are.
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

// Taps of a window are counted in 32 bits.
constexpr double kMaxTaps = 1 << 30;

std::string_view refuse_window(const KernelQuery& query) {
  const Attrs& attrs = query.node.attrs;
  if (!all_f32(query) && (!is_eight_bit(query.type(0).dtype) || fold_of(attrs) == ReduceFn::kSum))
    return "takes f32, and the largest or least of 8-bit numbers";
  size_t rank = query.type(0).rank();
  if (rank == 0) return "x is a scalar";
  int64_t elements = 1;
  for (size_t i = 0; i < rank; i++) {
    if (i + kConvAxes < rank && !is_trivial(attrs, i)) return "windows move along more than three axes";
    elements *= std::min(attrs.i64s("window")[i], kMaxSummed + 1);
    if (elements > kMaxSummed && fold_of(attrs) == ReduceFn::kSum) return "a window has too many elements";
  }
  ConvAxis last{.taps = attrs.i64s("window").back(),
                .stride = attrs.i64s("strides").back(),
                .dilation = attrs.i64s("dilation").back()};
  return fits_line(last) ? "" : "windows reach too far";
}

// Sets planes and axes of Args; returns how many taps a window has.
template <class Args>
double set_windows(const StepView& view, Args& args) {
  const View &x = view.in[0], &y = view.out[0];
  const Attrs& attrs = view.node.attrs;
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
  return taps;
}

void encode_window(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  const View &x = view.in[0], &y = view.out[0];
  WindowArgs args;
  args.x = x.as<const std::byte>();
  args.y = y.as<std::byte>();
  if (is_eight_bit(x.dtype)) args.type = x.dtype == DType::kI8 ? WindowArgs::kI8 : WindowArgs::kU8;
  args.fn = fold_of(view.node.attrs);
  double taps = set_windows(view, args);
  load(block, caps.fns.window.fold, args, 100 + 0.2 * taps * static_cast<double>(y.count()), launch);
}

// ---- where extremes are ----

std::string_view refuse_arg_window(const KernelQuery& query) {
  const Attrs& attrs = query.node.attrs;
  if (query.type(0).dtype != DType::kF32) return "takes f32 only";
  size_t rank = query.type(0).rank();
  if (rank == 0) return "x is a scalar";
  double reach = 1;
  for (size_t i = 0; i < rank; i++) {
    if (i + kConvAxes < rank && !is_trivial(attrs, i)) return "windows move along more than three axes";
    reach *= static_cast<double>(attrs.i64s("window")[i]) * static_cast<double>(attrs.i64s("dilation")[i]);
  }
  return reach > kMaxTaps ? "windows reach too far" : "";
}

void encode_arg_window(const StepView& view, const Caps& caps, void* block, Launch& launch) {
  ArgWindowArgs args;
  args.x = view.in[0].as<float>();
  args.y = view.out[0].as<int64_t>();
  args.is_min = view.node.attrs.is("fn", "min");
  double taps = set_windows(view, args);
  load(block, caps.fns.window.arg, args, 100 + 0.5 * taps * static_cast<double>(view.out[0].count()), launch);
}

}  // namespace

void add_window_rows(RowsByOp& by_op) {
  add(by_op, native<WindowArgs>(Op::kReduceWindow, "window_f32", refuse_window, encode_window));
  // Denormals are told apart, so they are kept.
  add(by_op, loops<ArgWindowArgs>(Op::kArgReduceWindow, "arg_window_f32", refuse_arg_window, encode_arg_window));
}

}  // namespace rlx::cpu
