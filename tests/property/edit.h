// SPDX-License-Identifier: Apache-2.0
// Copies of a graph in which some nodes become something else: what near misses, planted faults, noise and the cutting
// of failing graphs have in common. What no output needs any more is left out; inference runs anew for every node.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace rlx::test {

using Values = std::vector<Value>;

// One node of `from`, with its inputs as they are called in `to`: the values that stand for its outputs there.
Result<Values> copy_node(const Graph& from, uint32_t index, const Values& in, Graph& to);
// The same with other attributes.
Result<Values> copy_node(const Graph& from, uint32_t index, const Values& in, Graph& to, Attrs attrs);

using NodeEdit = std::function<Result<Values>(Graph& to, uint32_t index, const Values& in)>;

enum class Leaves { kAll, kNeeded };  // the inputs of a body are positional, so all of them stay

// Guards, and the ranges of sizes that nodes decide, are found anew by inference; where a graph keeps its meaning,
// those that it had hold too, whoever asked for them.
enum class Guards { kAnew, kKept };

// Every node that the outputs need goes through `edit`; then what nobody needs any more goes.
Result<Graph> edited(const Graph& from, const NodeEdit& edit, Leaves leaves = Leaves::kNeeded,
                     Guards guards = Guards::kAnew);
// The graph with these outputs.
Result<Graph> with_outputs(const Graph& from, const std::vector<GraphOutput>& outputs, Leaves leaves = Leaves::kNeeded,
                           Guards guards = Guards::kAnew);
// What no output needs is left out.
Result<Graph> pruned(const Graph& from, Leaves leaves = Leaves::kNeeded);

// Each node whose attributes hold graphs, with these as `body` makes them; at this level only.
using BodyEdit = std::function<Result<Graph>(const Graph& body)>;
Result<Attrs> with_bodies(const Node& node, const BodyEdit& edit);
bool has_bodies(const Node& node);
// Every node, those in bodies included.
void visit_nodes(const Graph& graph, const std::function<void(const Graph&, const Node&)>& body);

// What the value is made of, where only its dtype or its shape is another: the first that is no cast and no view.
Value behind_casts_and_views(const Graph& graph, Value value);

}  // namespace rlx::test
