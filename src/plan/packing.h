// SPDX-License-Identifier: Apache-2.0
// Offsets for buffers with lifetimes, in one region.
#pragma once

#include <cstdint>
#include <span>

namespace rlx {

struct Lifetime {
  int64_t bytes = 0;
  uint32_t first = 0, last = 0;  // alive from step to step, both included
  int64_t offset = 0;            // the answer
};

inline constexpr int64_t kPlanAlignment = 64;

inline int64_t aligned(int64_t bytes, int64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Pairs of buffers that are alive together, and compared, besides 64 for each: beyond it those that are left, the
// smallest, go on top. Plans of a few thousand buffers stay far below.
inline constexpr size_t kPackingBudget = size_t{1} << 22;

// Gives every buffer an offset, aligned to as much as all their bytes are, so that none overlaps another of its time;
// returns the size of the region. Large buffers first, each at the lowest place that is free: within a few percent of
// the lower bound on real graphs (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020:
// greedy by size).
int64_t pack(std::span<Lifetime> buffers);

}  // namespace rlx
