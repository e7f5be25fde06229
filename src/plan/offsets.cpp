// SPDX-License-Identifier: Apache-2.0
// First every buffer takes the lowest gap among the buffers that are alive together with it. Once that has compared
// too many pairs, the rest is stacked on top. A segment tree over steps finds what is alive together.
#include "plan/offsets.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include "base/round_up.h"

namespace rlx {

namespace {

// The buffers placed so far, by lifetime: a segment tree over steps. A buffer is stored in the few tree nodes that
// cover its lifetime (`here`), and in all nodes above these (`below`).
class Alive {
 public:
  Alive(std::span<const Lifetime> buffers, uint32_t steps)
      : buffers_(buffers), leaves_(std::bit_ceil(steps)), nodes_(2 * leaves_), seen_(buffers.size(), UINT32_MAX) {}

  void add(uint32_t index) {
    const Lifetime& buffer = buffers_[index];
    int64_t top = buffer.offset + round_up(buffer.bytes, kPlanAlignment);
    each_part(buffer, [&](size_t part) {
      nodes_[part].here.push_back(index);
      nodes_[part].top_here = std::max(nodes_[part].top_here, top);
      for (size_t above = part / 2; above; above /= 2) {
        Node& node = nodes_[above];
        if (node.below.empty() || node.below.back() != index) node.below.push_back(index);
        node.top_below = std::max(node.top_below, top);
      }
    });
  }

  // Finds all buffers that are alive together with this one, each once. Returns false if there are more than `budget`.
  bool find(uint32_t index, size_t budget, std::vector<uint32_t>& found) {
    found.clear();
    auto take = [&](const std::vector<uint32_t>& list) {
      for (uint32_t other : list)
        if (std::exchange(seen_[other], index) != index) found.push_back(other);
    };
    bool complete = true;
    each_part(buffers_[index], [&](size_t part) {
      complete &= found.size() <= budget;
      if (!complete) return;
      take(nodes_[part].below);
      for (size_t node = part; node; node /= 2) take(nodes_[node].here);
    });
    return complete && found.size() <= budget;
  }

  // The lowest offset above all buffers that are alive together with this one.
  int64_t top(uint32_t index) const {
    int64_t top = 0;
    each_part(buffers_[index], [&](size_t part) {
      top = std::max(top, nodes_[part].top_below);
      for (size_t node = part; node; node /= 2) top = std::max(top, nodes_[node].top_here);
    });
    return top;
  }

 private:
  struct Node {
    std::vector<uint32_t> here, below;
    int64_t top_here = 0, top_below = 0;
  };

  template <class Visit>
  void each_part(const Lifetime& buffer, Visit&& visit) const {
    for (size_t a = buffer.first + leaves_, b = size_t{buffer.last} + 1 + leaves_; a < b; a /= 2, b /= 2) {
      if (a & 1) visit(a++);
      if (b & 1) visit(--b);
    }
  }

  std::span<const Lifetime> buffers_;
  size_t leaves_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> seen_;  // by buffer: the query that found it last
};

// The lowest gap between `others` that holds a buffer.
int64_t lowest_gap(std::span<const Lifetime> buffers, std::vector<uint32_t>& others, int64_t bytes) {
  std::sort(others.begin(), others.end(),
            [&](uint32_t a, uint32_t b) { return buffers[a].offset < buffers[b].offset; });
  int64_t offset = 0;
  for (uint32_t other : others) {
    if (buffers[other].offset >= offset + bytes) break;  // the gap before it is large enough
    offset = std::max(offset, buffers[other].offset + round_up(buffers[other].bytes, kPlanAlignment));
  }
  return offset;
}

}  // namespace

int64_t assign_offsets(std::span<Lifetime> buffers) {
  uint32_t steps = 1;
  for (const Lifetime& buffer : buffers) steps = std::max(steps, buffer.last + 2);
  std::vector<uint32_t> order(buffers.size()), others;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return buffers[a].bytes > buffers[b].bytes; });
  Alive placed(buffers, steps);
  size_t budget = kPairBudget + 64 * buffers.size();
  int64_t total = 0;
  for (uint32_t index : order) {
    Lifetime& buffer = buffers[index];
    if (budget && placed.find(index, budget, others)) {
      budget -= others.size();
      buffer.offset = lowest_gap(buffers, others, round_up(buffer.bytes, kPlanAlignment));
    } else {
      budget = 0;
      buffer.offset = placed.top(index);
    }
    total = std::max(total, buffer.offset + round_up(buffer.bytes, kPlanAlignment));
    placed.add(index);
  }
  return total;
}

}  // namespace rlx
