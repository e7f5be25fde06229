// SPDX-License-Identifier: Apache-2.0
// Finds the values that are views: reshapes, transposes, slices and broadcasts that read the bytes of another value,
// because nobody needs them as dense values. Invariant: a layout that is not dense reaches only kernels that accept it.
#pragma once

#include <optional>
#include <vector>

#include "ir/view.h"
#include "plan/plan.h"

namespace rlx {

// A value as a view of a root value's buffer.
struct Layout : Strided {
  Value root;
  bool dense = true;
  bool is_root(Value value) const { return root == value; }
  bool operator==(const Layout&) const = default;
};

// The layout of a view node's result, given that of its input; nullopt if the result must be computed.
std::optional<Layout> view_of(const Graph& graph, const Node& node, const Layout& input);

struct Layouts {
  ByValue<Layout> of;                          // a resident value is its own root
  std::vector<std::optional<Layout>> copy_of;  // by node: the view to copy, if its value is needed dense
};
Layouts choose_views(const LoweredGraph& lowered);

}  // namespace rlx
