// SPDX-License-Identifier: Apache-2.0
// Finds a node by what it computes: op, inputs and attributes. So equal nodes become one node. A hash table with open
// addressing and linear probing; an entry is the index of a node, with its hash. An erased entry leaves no tombstone:
// rules make and drop nodes of one hash thousands of times, and every probe would have to pass their tombstones.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace rlx {

class KnownNodes {
 public:
  KnownNodes(const Graph& graph, size_t expected)
      : graph_(graph), slots_(std::bit_ceil(std::max<size_t>(1024, 2 * expected))) {}

  static size_t hash_of(const OpInfo& info, std::span<const Value> in, const Attrs& attrs);
  // The hash of a node with so many inputs after one of them has changed.
  struct Change {
    size_t input;
    Value old, made;
  };
  static size_t hash_with(size_t hash, const OpInfo& info, size_t inputs, const Change& change);
  static bool is_mergeable(const OpInfo& info, const Attrs& attrs) {
    return is_pure(info, attrs) && !info.is(kInterface);
  }

  uint32_t find(size_t hash, const OpInfo& info, std::span<const Value> in,
                const Attrs& attrs) const;  // kNone if there is none
  void insert(size_t hash, uint32_t node);
  void erase(size_t hash, uint32_t node);  // does nothing if it is not there

  static constexpr uint32_t kNone = UINT32_MAX;

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX;
  struct Slot {
    size_t hash = 0;
    uint32_t node = kEmpty;
  };
  void fill(const Slot& slot);

  const Graph& graph_;
  std::vector<Slot> slots_;  // their number is a power of two
  size_t used_ = 0;
};

}  // namespace rlx
