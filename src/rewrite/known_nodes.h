// SPDX-License-Identifier: Apache-2.0
// Nodes by what they compute: op, inputs, attributes. So that equal nodes are one node. Open addressing with linear
// probing; an entry is a node's index, its hash is kept beside it.
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph.h"

namespace rlx {

class KnownNodes {
 public:
  explicit KnownNodes(const Graph& graph) : graph_(graph), slots_(1024) {}

  static size_t hash_of(const OpInfo& info, std::span<const Value> in, const Attrs& attrs);
  static bool is_mergeable(const OpInfo& info) { return info.is(kPure) && !info.is(kInterface); }

  uint32_t find(size_t hash, const OpInfo& info, std::span<const Value> in, const Attrs& attrs) const;  // kNone: new
  void insert(size_t hash, uint32_t node);
  void erase(size_t hash, uint32_t node);  // no harm if it is not there

  static constexpr uint32_t kNone = UINT32_MAX;

 private:
  static constexpr uint32_t kEmpty = UINT32_MAX, kErased = UINT32_MAX - 1;
  struct Slot {
    size_t hash = 0;
    uint32_t node = kEmpty;
  };
  void grow();

  const Graph& graph_;
  std::vector<Slot> slots_;  // a power of two
  size_t used_ = 0;          // erased ones included
  size_t alive_ = 0;
};

}  // namespace rlx
