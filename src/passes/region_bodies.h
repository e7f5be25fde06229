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
  struct Made {
    RegionParts parts;
    std::shared_ptr<const Graph> body;
  };
  uint32_t source_of(const RegionParts& parts, Value value) const;
  size_t hash_of(const RegionParts& parts) const;
  bool same_reads(const RegionParts& a, const RegionParts& b, size_t member) const;
  bool same(const RegionParts& a, const RegionParts& b) const;
  Status declare_symbols(const RegionParts& parts, Graph& body) const;
  std::vector<Dim> resolved_dims(Value value) const;
  Result<std::shared_ptr<const Graph>> make(const RegionParts& parts) const;

  const Graph& graph_;
  std::unordered_multimap<size_t, Made> made_;  // by hash_of
};

}  // namespace rlx
