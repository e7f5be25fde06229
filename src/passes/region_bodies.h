// SPDX-License-Identifier: Apache-2.0
// The bodies of elementwise regions. Regions that compute the same on inputs of the same types share one body: the
// layers of a network repeat, and a body costs more than the node that holds it. Its nodes have the names that they
// have in the first of these regions.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace rlx {

struct RegionParts {
  std::vector<uint32_t> members;  // in the order of the graph; the last makes the output
  std::vector<Value> inputs;      // what the members read from outside, without scalar constants
};

class RegionBodies {
 public:
  explicit RegionBodies(const Graph& graph) : graph_(graph) {}

  // Input i of the body is "x<i>", its output "y". Scalar constants are copied into it.
  Result<std::shared_ptr<const Graph>> body_of(RegionParts parts);

 private:
  struct Region {
    RegionParts parts;
    std::vector<uint32_t> sources;  // where the members read their operands from, one after another
  };
  struct Made {
    Region region;
    std::shared_ptr<const Graph> body;
  };
  std::vector<uint32_t> sources_of(const RegionParts& parts) const;
  size_t hash_of(const Region& region) const;
  bool same_outside(Value a, Value b) const;
  bool same(const Region& a, const Region& b) const;
  Status share_symbols_of(const RegionParts& parts, Graph& body) const;
  std::vector<Dim> resolved_dims(Value value) const;
  Result<std::shared_ptr<const Graph>> make(const RegionParts& parts) const;

  const Graph& graph_;
  std::unordered_multimap<size_t, Made> made_;  // by hash_of
};

}  // namespace rlx
