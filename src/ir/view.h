// SPDX-License-Identifier: Apache-2.0
// Views: values that are another way to look at the bytes of a buffer. Which op gives one is a function of its row
// (`OpInfo::view`), so that planner, kernels and rules need not know the ops.
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

// What a row's function is given: how the first input lies, to say how the first output does.
struct ViewArgs {
  std::span<const Dim> from, to;  // dims of the input, of the output
  const Attrs& attrs;
  const Strided& input;
};

}  // namespace rlx
