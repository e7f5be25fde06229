// SPDX-License-Identifier: Apache-2.0
// The transformations of graphs that tests know by name: for goldens (`; pass: decompose`), and for the property that
// none of them changes the meaning of a graph.
#pragma once

#include <span>
#include <string_view>

#include "base/bounds.h"
#include "passes/pass.h"

namespace rlx::test {

// Whether the device has kernels for every composite, or for none.
enum class Composites : uint8_t { kTaken, kRefused };

struct Transform {
  std::string_view name;  // of the pass; with ".strict" if only exact rules may fire
  PassFn pass;
  HasWorkFn has_work;  // null: not known
  Grade math;
  Composites composites;

  bool exact() const { return math == Grade::kExact; }  // results keep every bit
  // For runs with these bounds: if an index out of range fails the run, a guard may fail it instead.
  Result<Graph> run(const Graph& graph, Bounds bounds = Bounds::kError, RewriteReport* report = nullptr) const;
};
std::span<const Transform> transforms();
// The passes up to merge-siblings, for a device that takes every composite.
Result<Graph> composed(const Graph& graph, RewriteReport* report = nullptr);
const Transform* find_transform(std::string_view name);  // null: no such transform

// Whether there is a node of this op. Graph::ops() ends with the last op of which there is one.
bool has_op(const Graph& graph, Op op);

}  // namespace rlx::test
