// SPDX-License-Identifier: Apache-2.0
// The row for grid_sample over f32.
#include "backends/cpu/kernels/grid_sample.h"

#include <cmath>

#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

namespace {

std::string_view refuse_grid_sample(const KernelQuery& query) {
  return all_f32(query) ? "" : "takes f32 only";
}

void encode_grid_sample(const StepView& view, const Caps&, void* block, Launch& launch) {
  const View &x = view.in[0], &y = view.out[0];
  const Attrs& attrs = view.node.attrs;
  GridSampleArgs args;
  args.x = x.as<float>();
  args.grid = view.in[1].as<float>();
  args.y = y.as<float>();
  args.items = y.dims[0];
  args.channels = y.dims[1];
  args.axes = static_cast<int32_t>(x.dims.size()) - 2;
  for (size_t i = 2; i < x.dims.size(); i++) {
    args.sizes[i - 2] = x.dims[i];
    args.places *= y.dims[i];
  }
  args.mode = attrs.is("mode", "nearest") ? GridSampleArgs::kNearest
              : attrs.is("mode", "cubic") ? GridSampleArgs::kCubic
                                          : GridSampleArgs::kLinear;
  args.padding = attrs.is("padding", "zeros")    ? GridSampleArgs::kZeros
                 : attrs.is("padding", "border") ? GridSampleArgs::kBorder
                                                 : GridSampleArgs::kReflection;
  args.align_corners = attrs.flag("align_corners");
  double each = args.mode == GridSampleArgs::kCubic ? 4 : args.mode == GridSampleArgs::kLinear ? 2 : 1;
  double corners = std::pow(each, args.axes), places = static_cast<double>(args.items * args.places);
  load(block, grid_sample_loop(), args, 100 + places * (30 + 0.5 * corners * static_cast<double>(args.channels)),
       launch);
}

}  // namespace

void add_grid_sample_rows(RowsByOp& by_op) {
  add(by_op, native<GridSampleArgs>(Op::kGridSample, "grid_sample_f32", refuse_grid_sample, encode_grid_sample));
}

}  // namespace rlx::cpu
