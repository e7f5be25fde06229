// SPDX-License-Identifier: Apache-2.0
// Offsets for buffers with lifetimes, in one region.
#pragma once

#include <cstdint>
#include <span>

namespace rlx {

struct Lifetime {
  int64_t bytes = 0;
  uint32_t first = 0, last = 0;  // alive from step to step, both included
  int64_t offset = 0;            // the result
};

inline constexpr int64_t kPlanAlignment = 64;

// A limit on the compared pairs of buffers that are alive together, in addition to 64 for each buffer. Beyond it, the
// remaining buffers, which are the smallest, go on top of the others. Plans of a few thousand buffers stay far below
// it.
inline constexpr size_t kPairBudget = size_t{1} << 22;

// Gives every buffer an offset such that no two buffers with a common lifetime overlap, and returns the size of the
// region. If all sizes are multiples of an alignment, so are all offsets. Large buffers come first, each at the lowest
// free place: within a few percent of the lower bound on real graphs (Pisarchyk and Lee, "Efficient Memory Management
// for Deep Neural Net Inference", 2020: greedy by size).
int64_t assign_offsets(std::span<Lifetime> buffers);

}  // namespace rlx
