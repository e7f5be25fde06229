// SPDX-License-Identifier: Apache-2.0
// A product of many factors, as a matcher takes it apart: nested `mul`s in any grouping.
#pragma once

#include <vector>

#include "base/function_ref.h"
#include "ir/graph.h"

namespace rlx {

// A tree of occurrences: in x * x the value x stands twice, and is two factors.
struct Occurrence {
  Value value;
  size_t left = 0, right = 0;  // indices into the tree, or 0: it is not taken apart
  size_t count = 1;            // of occurrences: it and all below it
  size_t first = 0;            // its number in a walk from the root down; the last of those below: first + count - 1
  bool is_product() const { return left != 0; }
  bool holds(const Occurrence& part) const { return first <= part.first && part.first + part.count <= first + count; }
};
using ProductTree = std::vector<Occurrence>;

// The product that `root` is; the root comes first, parts have later indices than their whole. A factor is taken apart
// only if products of the tree alone use it, and not beyond 64 occurrences.
ProductTree product_tree(const Graph& graph, Value root,
                         FunctionRef<bool(Value, std::span<const uint32_t> users)> is_used_only_by);

}  // namespace rlx
