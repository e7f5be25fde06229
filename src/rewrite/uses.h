// SPDX-License-Identifier: Apache-2.0
// For each node, the inputs of other nodes that read it: linked lists in one array, so that adding and removing a use
// takes constant time. Only uses by live nodes are linked.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace rlx {

class UseLists {
 public:
  struct Use {
    uint32_t user, input;  // the reading node, and the number of its input
    uint32_t previous, next;
  };

  void add_node(uint32_t node, size_t inputs);  // nodes come in order; the uses by a new one are not linked yet
  void shorten(size_t nodes);                   // the nodes that go must not be linked

  void link(uint32_t user, size_t input, uint32_t used);
  void unlink(uint32_t user, size_t input, uint32_t used);

  uint32_t count(uint32_t node) const { return nodes_[node].count; }
  // Calls visit(user, input) for each use until one call returns false. Returns whether none did. `visit` must not
  // change the lists.
  template <class Visit>
  bool all_of(uint32_t node, Visit visit) const {
    for (uint32_t at = nodes_[node].first; at != kNone; at = uses_[at].next)
      if (!visit(uses_[at].user, uses_[at].input)) return false;
    return true;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    uint32_t own;            // its inputs begin at this index of `uses_`
    uint32_t first = kNone;  // the first use of it
    uint32_t count = 0;
  };
  std::vector<Entry> nodes_;
  std::vector<Use> uses_;
};

inline void UseLists::add_node(uint32_t node, size_t inputs) {
  nodes_.push_back({static_cast<uint32_t>(uses_.size())});
  for (uint32_t input = 0; input < inputs; input++) uses_.push_back({node, input, kNone, kNone});
}

inline void UseLists::shorten(size_t nodes) {
  if (nodes == nodes_.size()) return;
  uses_.resize(nodes_[nodes].own);
  nodes_.resize(nodes);
}

inline void UseLists::link(uint32_t user, size_t input, uint32_t used) {
  uint32_t at = nodes_[user].own + static_cast<uint32_t>(input);
  uses_[at].previous = kNone;
  uses_[at].next = nodes_[used].first;
  if (uses_[at].next != kNone) uses_[uses_[at].next].previous = at;
  nodes_[used].first = at;
  nodes_[used].count++;
}

inline void UseLists::unlink(uint32_t user, size_t input, uint32_t used) {
  uint32_t at = nodes_[user].own + static_cast<uint32_t>(input);
  auto [_, __, previous, next] = uses_[at];
  (previous == kNone ? nodes_[used].first : uses_[previous].next) = next;
  if (next != kNone) uses_[next].previous = previous;
  nodes_[used].count--;
}

}  // namespace rlx
