// SPDX-License-Identifier: Apache-2.0
// Views: values that are the bytes of another value, read with other strides. A function of an op's row
// (`OpInfo::view`) says how, so planner, kernels and rules name no op.
#pragma once

#include <span>
#include <vector>

#include "base/dim.h"
#include "ir/attr.h"

namespace rlx {

// Element [i, j, ...] lies `shift + i * strides[0] + j * strides[1] + ...` elements from the buffer's first.
struct Strided {
  std::vector<Dim> strides;  // one per axis
  Dim shift = 0;
  bool operator==(const Strided&) const = default;
};

std::vector<Dim> dense_strides(std::span<const Dim> dims);  // row-major, without gaps
bool is_dense(std::span<const Dim> dims, const Strided& strided);

// The arguments of a row's function: the layout of the first input, from which it computes that of the first output.
struct ViewArgs {
  std::span<const Dim> from, to;  // dims of the input, of the output
  const Attrs& attrs;
  const Strided& input;
};

}  // namespace rlx
