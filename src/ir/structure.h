// SPDX-License-Identifier: Apache-2.0
// Whether two graphs mean the same, as their parts show.
#pragma once

#include <cstddef>

namespace rlx {

class Graph;

// The same nodes, names of leaves and outputs, ranges of the symbols that they use, and guards that say the same in
// whatever form. What other nodes are called does not count.
bool same_structure(const Graph& a, const Graph& b);
size_t structure_hash(const Graph& graph);

}  // namespace rlx
