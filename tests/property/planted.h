// SPDX-License-Identifier: Apache-2.0
// Wrong transformations of graphs, one of each kind that a compiler has made: what the random graphs and their judge
// must find. They are plain functions from graph to graph and know nothing of the library's rules.
#pragma once

#include <optional>
#include <span>

#include "ir/graph.h"

namespace rlx::test {

struct Planted {
  const char* name;
  bool exact;                                         // it claims to keep every bit
  bool with_checks;                                   // and that only where an index out of range fails the run
  std::optional<Graph> (*apply)(const Graph& graph);  // nothing where the graph has nothing for it
};
std::span<const Planted> planted_faults();

}  // namespace rlx::test
