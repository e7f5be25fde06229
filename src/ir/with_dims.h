// SPDX-License-Identifier: Apache-2.0
// A graph with other dims in place of its symbols.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "ir/graph.h"

namespace rlx {

using SymbolDims = std::map<std::string, Dim, std::less<>>;

// Replaces symbols wherever they stand: in types, attributes, guards and bodies. All types are inferred again. The new
// dims may have symbols of `around`.
Result<Graph> with_dims(const Graph& graph, const SymbolDims& dims, const Graph* around = nullptr);

Dim with_dims(const Dim& dim, const SymbolDims& dims);
std::vector<Dim> with_dims(const std::vector<Dim>& list, const SymbolDims& dims);

// Asks of the graph what was declared of a symbol for which the dim stands now: a guard, or RLX_E_SHAPE.
Status require_range(Graph& graph, const Dim& dim, Interval range, const std::string& where);

}  // namespace rlx
