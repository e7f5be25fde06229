// SPDX-License-Identifier: Apache-2.0
// Whether a relation of sizes holds wherever the guards of a graph do, tried at many sizes. Only for checks of the
// library itself where no proof is found: a type that was inferred under fewer guards may have another form than the
// one that is inferred now.
#pragma once

#include "ir/graph.h"

namespace rlx {

// True if no sizes were found at which the guards hold and this one does not.
bool holds_at_samples(const Graph& graph, const Guard& guard);

// Whether no sizes were found at which all guards hold: they may contradict each other.
bool guards_contradict(const Graph& graph);

// The same type by proof, or at all of these sizes.
bool is_same_at_samples(const Graph& graph, const ValueType& a, const ValueType& b);

}  // namespace rlx
