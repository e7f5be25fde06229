// SPDX-License-Identifier: Apache-2.0
// The transformations of graphs that tests know by name: goldens (`; pass: decompose`), and the property that none of
// them changes what a graph computes.
#pragma once

#include <span>
#include <string_view>

#include "ir/graph.h"

namespace rlx::test {

struct Transform {
  std::string_view name;
  Result<Graph> (*run)(const Graph&);
  bool exact;  // results keep every bit; else they keep their meaning
};
std::span<const Transform> transforms();
const Transform* find_transform(std::string_view name);  // null: no such transform

}  // namespace rlx::test
