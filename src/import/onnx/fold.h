// SPDX-License-Identifier: Apache-2.0
// Shape arithmetic of ONNX graphs on symbolic sizes (semantics.md S7). A fold returns the result of a node if it is
// known for all sizes of the model's symbols, else nullopt: then the node computes at run time.
#pragma once

#include <optional>

#include "import/onnx/call.h"

namespace rlx::onnx {

using Folded = std::optional<Sizes>;

// Element by element, broadcasting.
Folded fold_identity(Call& call);  // for rounding too, because sizes are whole
Folded fold_neg(Call& call);
Folded fold_add(Call& call);
Folded fold_sub(Call& call);
Folded fold_mul(Call& call);
Folded fold_div(Call& call);
Folded fold_mod(Call& call);
Folded fold_min(Call& call);
Folded fold_max(Call& call);
Folded fold_and(Call& call);
Folded fold_or(Call& call);
Folded fold_not(Call& call);
Folded fold_equal(Call& call);
Folded fold_less(Call& call);
Folded fold_less_equal(Call& call);
Folded fold_greater(Call& call);
Folded fold_greater_equal(Call& call);
Folded fold_where(Call& call);
Folded fold_cast(Call& call);
Folded fold_cast_like(Call& call);

// The elements of `from` at the places that `index` gives for the row-major positions of a tensor of these dims.
template <class Index>
Folded move_sizes(const Sizes& from, std::vector<int64_t> dims, Index index) {
  auto count = element_count(std::span<const int64_t>(dims));
  if (!count || *count > static_cast<int64_t>(kMaxSizes)) return std::nullopt;
  Sizes to{from.dtype, std::move(dims), {}};
  for (int64_t i = 0; i < *count; i++) to.items.push_back(from.items[static_cast<size_t>(index(i))]);
  return to;
}

}  // namespace rlx::onnx
