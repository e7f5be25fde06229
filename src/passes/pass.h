// SPDX-License-Identifier: Apache-2.0
// A pass takes a graph and returns a graph with the same meaning. It holds no state: its context has the options and
// answers questions about the device. compile/compile.cpp orders the passes and verifies their results.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "rewrite/rule_set.h"

namespace rlx {

struct PassContext {
  std::string device;  // for messages; may be empty
  Grade math = Grade::kClose;
  std::vector<std::string> skip;  // passes and rules to leave out
  // Why the device has no kernel for a node, or an empty text. Null: `supports` is false for all. Rewrites read null
  // the other way (RewriteOptions::refuses): nothing is refused.
  std::function<std::string(const Facts&, Value)> refuses = nullptr;
  // Whether the device has a kernel for a node other than its reference path. Null: no half is widened.
  std::function<bool(const Facts&, Value)> is_native = nullptr;
  // Whether its kernel for a node can be part of a region. Null: every native one can; if that is null too, every one
  // there is.
  std::function<bool(const Facts&, Value)> joins_regions = nullptr;
  bool is_body = false;            // whether the graph is a body of a node
  bool may_widen = false;          // whether the pass `widen` is still to come
  bool checks_indices = true;      // as in RewriteOptions
  DType precision = DType::kNone;  // the dtype to compute floats in; kNone: as declared
  bool plain_layout = false;       // layouts stay as the graph has them
  RewriteReport* report = nullptr;

  bool supports(const Facts& facts, Value value) const { return refuses && refuses(facts, value).empty(); }
  RewriteOptions rewrite_options(std::string_view pass) const;
};

bool is_spelling(const Facts& facts, Value value);  // a composite that is only a name for its decomposition

using PassFn = Result<Graph> (*)(Graph, PassContext&);

// The passes; compile.cpp lists them in order. One file each.
Result<Graph> inline_customs(Graph graph, PassContext& context);
Result<Graph> canonicalize(Graph graph, PassContext& context);
Result<Graph> fold_constants(Graph graph, PassContext& context);
Result<Graph> assign_precision(Graph graph, PassContext& context);
Result<Graph> inline_branches(Graph graph, PassContext& context);
Result<Graph> sink_residents(Graph graph, PassContext& context);
Result<Graph> hoist_invariants(Graph graph, PassContext& context);
Result<Graph> fuse_composites(Graph graph, PassContext& context);
Result<Graph> choose_layouts(Graph graph, PassContext& context);
Result<Graph> merge_siblings(Graph graph, PassContext& context);
Result<Graph> expand_composites(Graph graph, PassContext& context);
Result<Graph> widen_halves(Graph graph, PassContext& context);
Result<Graph> simplify(Graph graph, PassContext& context);
Result<Graph> group_elementwise(Graph graph, PassContext& context);
Result<Graph> drop_dead_nodes(Graph graph, PassContext& context);
Result<Graph> check_supported(Graph graph, PassContext& context);

// For each pass, in the same order: false if it certainly leaves the graph as it is and reports no error. Running a
// pass on a body copies the body; asking does not. A pass must be right also where it has no work: tests run passes
// without asking.
using HasWorkFn = bool (*)(const Graph&, const PassContext&);
bool has_customs(const Graph& graph, const PassContext& context);
bool may_canonicalize(const Graph& graph, const PassContext& context);
bool has_foldable(const Graph& graph, const PassContext& context);
bool has_other_precision(const Graph& graph, const PassContext& context);
bool has_known_branch(const Graph& graph, const PassContext& context);
bool may_sink(const Graph& graph, const PassContext& context);
bool has_loop(const Graph& graph, const PassContext& context);
bool may_fuse(const Graph& graph, const PassContext& context);
bool may_choose_layouts(const Graph& graph, const PassContext& context);
bool may_merge_siblings(const Graph& graph, const PassContext& context);
bool has_composite(const Graph& graph, const PassContext& context);
bool may_widen(const Graph& graph, const PassContext& context);
bool may_simplify(const Graph& graph, const PassContext& context);
bool may_group(const Graph& graph, const PassContext& context);
bool has_dead_node(const Graph& graph, const PassContext& context);
bool has_unsupported(const Graph& graph, const PassContext& context);

}  // namespace rlx
