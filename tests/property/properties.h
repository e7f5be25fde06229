// SPDX-License-Identifier: Apache-2.0
// What holds for every graph, tried on the random graph of a seed.
#pragma once

#include <cstdint>
#include <string>

namespace rlx::test {

struct Tally {
  uint64_t graphs = 0;
  uint64_t evaluated = 0;  // the interpreter gave results for it, so that transforms were compared
};

// "" or what does not hold, with the graph.
std::string check_random_graph(uint64_t seed, Tally& tally);
// Seeds from `seed` on until the time is over or one fails.
std::string check_random_graphs(uint64_t seed, double seconds, Tally& tally);

}  // namespace rlx::test
