// SPDX-License-Identifier: Apache-2.0
// A pass: a graph in, an equal graph out. What it may ask of the device and the options stands in its context; passes
// hold no state. Order and verification are compile/compile.cpp's business.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "rewrite/rules.h"

namespace rlx {

struct PassContext {
  Grade math = Grade::kClose;
  std::vector<std::string> skip;  // passes and rules to leave out
  // Why the device has no kernel for a node as it stands; empty: it has one. Null: a device that has none for
  // composites.
  std::function<std::string(const Graph&, Value)> refuses = nullptr;
  bool checks_indices = true;  // of RewriteOptions
  RewriteReport* report = nullptr;

  bool supports(const Graph& graph, Value value) const { return refuses && refuses(graph, value).empty(); }
  RewriteOptions rewrite_options(std::string_view pass) const;
};

using PassFn = Result<Graph> (*)(const Graph&, PassContext&);

// The passes; compile.cpp lists them in order. One file each.
Result<Graph> canonicalize(const Graph& graph, PassContext& context);
Result<Graph> fold_constants(const Graph& graph, PassContext& context);
Result<Graph> inline_branches(const Graph& graph, PassContext& context);
Result<Graph> sink_residents(const Graph& graph, PassContext& context);
Result<Graph> hoist_invariants(const Graph& graph, PassContext& context);
Result<Graph> fuse_composites(const Graph& graph, PassContext& context);
Result<Graph> merge_siblings(const Graph& graph, PassContext& context);
Result<Graph> expand_composites(const Graph& graph, PassContext& context);
Result<Graph> simplify(const Graph& graph, PassContext& context);
Result<Graph> group_elementwise(const Graph& graph, PassContext& context);
Result<Graph> drop_dead_nodes(const Graph& graph, PassContext& context);
Result<Graph> check_supported(const Graph& graph, PassContext& context);

}  // namespace rlx
