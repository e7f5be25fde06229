// SPDX-License-Identifier: Apache-2.0
// For each value, the inputs of nodes that read it: linked lists in one array, so that adding and removing a use takes
// constant time. Only uses by live nodes are linked.
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

  void reserve(size_t nodes);
  // Nodes come in order. The uses by a new one are not linked yet.
  void add_node(uint32_t node, size_t inputs, size_t outputs);
  void shorten(size_t nodes);  // the nodes that go must not be linked

  void link(uint32_t user, size_t input, Value used);
  void unlink(uint32_t user, size_t input, Value used);

  uint32_t count(uint32_t node) const { return nodes_[node].count; }  // of all its outputs
  bool any_of(Value value) const { return first(value) != kNone; }
  // Calls visit(user, input) for each use until one call returns false. Returns whether none did. `visit` must not
  // change the lists.
  template <class Visit>
  bool all_of(Value value, Visit visit) const {
    for (uint32_t at = first(value); at != kNone; at = uses_[at].next)
      if (!visit(uses_[at].user, uses_[at].input)) return false;
    return true;
  }
  // The same for all outputs of a node.
  template <class Visit>
  bool all_of(uint32_t node, Visit visit) const {
    for (uint32_t output = 0; output < outputs(node); output++)
      if (!all_of(Value{node, output}, visit)) return false;
    return true;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Entry {
    uint32_t inputs;   // begin at this index of `uses_`
    uint32_t outputs;  // begin at this index of `firsts_`
    uint32_t count = 0;
  };
  uint32_t first(Value value) const { return firsts_[nodes_[value.node].outputs + value.output]; }
  uint32_t outputs(uint32_t node) const {
    size_t end = node + 1 < nodes_.size() ? nodes_[node + 1].outputs : firsts_.size();
    return static_cast<uint32_t>(end) - nodes_[node].outputs;
  }

  std::vector<Entry> nodes_;
  std::vector<Use> uses_;         // by input of a node
  std::vector<uint32_t> firsts_;  // by output of a node: its first use
};

inline void UseLists::reserve(size_t nodes) {
  nodes_.reserve(nodes);
  uses_.reserve(2 * nodes);
  firsts_.reserve(nodes);
}

inline void UseLists::add_node(uint32_t node, size_t inputs, size_t outputs) {
  nodes_.push_back({static_cast<uint32_t>(uses_.size()), static_cast<uint32_t>(firsts_.size())});
  for (uint32_t input = 0; input < inputs; input++) uses_.push_back({node, input, kNone, kNone});
  for (size_t output = 0; output < outputs; output++) firsts_.push_back(kNone);
}

inline void UseLists::shorten(size_t nodes) {
  if (nodes == nodes_.size()) return;
  uses_.resize(nodes_[nodes].inputs);
  firsts_.resize(nodes_[nodes].outputs);
  nodes_.resize(nodes);
}

inline void UseLists::link(uint32_t user, size_t input, Value used) {
  uint32_t at = nodes_[user].inputs + static_cast<uint32_t>(input);
  Entry& entry = nodes_[used.node];
  uint32_t& first = firsts_[entry.outputs + used.output];
  uses_[at].previous = kNone;
  uses_[at].next = first;
  if (first != kNone) uses_[first].previous = at;
  first = at;
  entry.count++;
}

inline void UseLists::unlink(uint32_t user, size_t input, Value used) {
  uint32_t at = nodes_[user].inputs + static_cast<uint32_t>(input);
  Entry& entry = nodes_[used.node];
  const uint32_t previous = uses_[at].previous, next = uses_[at].next;
  (previous == kNone ? firsts_[entry.outputs + used.output] : uses_[previous].next) = next;
  if (next != kNone) uses_[next].previous = previous;
  entry.count--;
}

}  // namespace rlx
