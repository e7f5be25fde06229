// SPDX-License-Identifier: Apache-2.0
// What a sub-graph shares with the graph around it.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// The sizes that the contents of this graph's values decide: its nodes give them a value in a run, so they mean
// nothing outside, whatever a graph around it calls the same. All its other symbols are those of the graph around it.
std::vector<std::string> own_symbols(const Graph& graph);

// The sizes that carries bring into a body: symbols that stand alone in the dim of a carry, and that no graph around
// knows. Every trip sets them anew.
std::vector<std::string> carried_symbols(const Graph& body, size_t carries, const std::vector<std::string>& known);

// All trips of a `while` from these values: the last carries, at whatever sizes they have come to, and the rest.
using RunBody = std::function<Result<std::vector<Tensor>>(const Graph&, std::span<const Tensor>)>;
Result<std::vector<Tensor>> while_trips(const Attrs& attrs, std::vector<Tensor> values, const RunBody& run);

}  // namespace rlx
