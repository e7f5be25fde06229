// SPDX-License-Identifier: Apache-2.0
// The common part of rows for convolutions: sizes of x, of windows and of places.
#pragma once

#include "backends/cpu/gemm/conv.h"
#include "backends/cpu/rows/native.h"

namespace rlx::cpu {

inline int64_t literal_count(std::span<const Dim> dims) {
  int64_t count = 1;
  for (const Dim& dim : dims) count *= dim.literal();
  return count;
}

// For a node whose first inputs are x and w.
inline void set_shape(const StepView& view, ConvShape& shape) {
  const View &x = view.in[0], &w = view.in[1], &y = view.out[0];
  const Attrs& attrs = view.node.attrs;
  shape.items = y.dims[0];
  shape.groups = attrs.i64("groups");
  shape.channels = w.dims[1];
  shape.filters = w.dims[0] / shape.groups;
  size_t axes = x.dims.size() - 2;
  for (size_t i = 0; i < axes; i++)
    shape.axes[kConvAxes - axes + i] = {.size = x.dims[2 + i],
                                        .out = y.dims[2 + i],
                                        .taps = w.dims[2 + i],
                                        .stride = attrs.i64s("strides")[i],
                                        .dilation = attrs.i64s("rhs_dilation")[i],
                                        .lhs_dilation = attrs.i64s("lhs_dilation")[i],
                                        .lo = size_of(view, attrs.dims("pad_lo")[i])};
}

inline double terms_of(const ConvShape& shape) {
  return static_cast<double>(shape.items * shape.groups * shape.filters) * static_cast<double>(shape.places()) *
         static_cast<double>(shape.terms());
}

// If all windows have one element, all places form one row.
inline void join_places(ConvShape& shape) {
  for (const ConvAxis& axis : shape.axes)
    if (axis.taps != 1 || axis.stride != 1 || axis.lhs_dilation != 1 || axis.lo != 0 || axis.size != axis.out) return;
  shape.axes[2].size = shape.axes[2].out = shape.places();
  shape.axes[0].size = shape.axes[0].out = shape.axes[1].size = shape.axes[1].out = 1;
}

}  // namespace rlx::cpu
