// SPDX-License-Identifier: Apache-2.0
// The row for col2im.
#include "backends/cpu/kernels/col2im.h"

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

constexpr int64_t kMaxTaps = 512;  // that are added one after another (semantics.md C3)

std::string_view refuse_col2im(const KernelQuery& query) {
  DType dtype = query.type(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) return "takes f32 and f64 only";
  std::span<const int64_t> kernel = query.node.attrs.i64s("kernel");
  if (kernel.size() > kCol2imAxes) return "windows over at most 3 axes";
  int64_t taps = 1;
  for (int64_t length : kernel) {
    if (length > kMaxTaps / taps) return "adds at most 512 taps";
    taps *= length;
  }
  return "";
}

void encode_col2im(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &p = view.in[0], &y = view.out[0];
  const Attrs& attrs = view.node.attrs;
  std::span<const int64_t> kernel = attrs.i64s("kernel");
  auto number = [&](const char* name, size_t i) { return attrs.has(name) ? attrs.i64s(name)[i] : 1; };
  auto pad = [&](const char* name, size_t i) { return attrs.has(name) ? size_of(view, attrs.dims(name)[i]) : 0; };
  Col2imArgs args;
  args.from = p.data, args.to = y.data, args.dtype = p.dtype;
  args.planes = y.dims[0] * y.dims[1];
  for (size_t i = 0; i < kernel.size(); i++) {
    Col2imAxis& axis = args.axes[kCol2imAxes - kernel.size() + i];
    axis = {.size = y.dims[2 + i], .taps = kernel[i], .stride = number("strides", i)};
    axis.dilation = number("dilation", i), axis.lo = pad("pad_lo", i);
    int64_t room = axis.size + axis.lo + pad("pad_hi", i) - (axis.dilation * (axis.taps - 1) + 1);
    axis.count = room < 0 ? 0 : room / axis.stride + 1;
  }
  load(block, col2im_loop(), args, 50 + 0.3 * static_cast<double>(p.count() + y.count()), launch);
}

}  // namespace

void add_col2im_rows(RowsByOp& by_op) {
  add(by_op, loops<Col2imArgs>(Op::kCol2im, "col2im", refuse_col2im, encode_col2im));
}

}  // namespace rlx::cpu
