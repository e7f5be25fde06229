// SPDX-License-Identifier: Apache-2.0
#include "plan/packing.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace rlx {

static int64_t aligned(int64_t bytes) {
  return (bytes + kPlanAlignment - 1) / kPlanAlignment * kPlanAlignment;
}

int64_t pack(std::span<Lifetime> buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<const Lifetime*> placed;  // by offset
  int64_t total = 0;
  for (size_t index : order) {
    Lifetime& buffer = buffers[index];
    buffer.offset = 0;
    for (const Lifetime* other : placed) {
      if (other->last < buffer.first || other->first > buffer.last) continue;
      if (other->offset >= buffer.offset + aligned(buffer.bytes)) break;  // the gap before it is large enough
      buffer.offset = std::max(buffer.offset, other->offset + aligned(other->bytes));
    }
    total = std::max(total, buffer.offset + aligned(buffer.bytes));
    placed.insert(std::upper_bound(placed.begin(), placed.end(), &buffer,
                                   [](const Lifetime* a, const Lifetime* b) { return a->offset < b->offset; }),
                  &buffer);
  }
  return total;
}

}  // namespace rlx
