// SPDX-License-Identifier: Apache-2.0
// What holds for every graph: text gives it back, no pass changes what it computes, and every device computes that.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "generate.h"
#include "runtime/env.h"

namespace rlx::test {

struct Tally {
  uint64_t graphs = 0;
  uint64_t seed = 0;       // of the graph of now
  uint64_t evaluated = 0;  // the interpreter gave results for it, so that transforms and programs were compared
};

// "", or what does not hold, and the graph.
std::string check_graph(const RandomGraph& random, const std::shared_ptr<Env>& env, Tally& tally);
// The graphs of seeds from `seed` on, until the time is over or one fails.
std::string check_random_graphs(uint64_t seed, double seconds, Tally& tally);

}  // namespace rlx::test
