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

// Requires that the dim lies in this range, which was declared for the symbol that it replaces. Where ranges do not
// prove it, the graph gets a guard; RLX_E_SHAPE where they refute it.
Status require_range(Graph& graph, const Dim& dim, Interval range, const std::string& where);

}  // namespace rlx
