// SPDX-License-Identifier: Apache-2.0
// Random graphs. They hold nodes of every row of the op table whose attributes text can give, composites as exporters
// spell them, integers that wrap, and control flow. Sizes are 0, 1, odd and symbolic; each graph runs at three sets of
// them. The same seed is the same graph on every machine.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace rlx::test {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t end) { return static_cast<int64_t>(next() % static_cast<uint64_t>(end)); }
  int64_t between(int64_t lo, int64_t hi) { return lo + below(hi - lo + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <class List>
  auto pick(const List& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(std::size(list))))];
  }

 private:
  uint64_t state_;
};

struct RandomGraph {
  Graph graph;
  std::vector<std::vector<Tensor>> runs;  // the inputs of each run; their dims say its sizes
  std::map<std::string, Tensor> params;   // of the graph and of its bodies
};

// `wanted`: this row's node is tried first; null: any.
RandomGraph random_graph(uint64_t seed, const OpTable& table, const OpInfo* wanted = nullptr);
// One of values whose sizes contents, branches and loops decide.
RandomGraph varying_graph(uint64_t seed);
// A given graph, at sizes and with contents of this seed.
RandomGraph with_contents(uint64_t seed, Graph graph);
// No leaf, not internal; no input that must be block-quantised; no required attribute that is a sub-graph or a tensor.
bool can_generate(const OpInfo& row);

}  // namespace rlx::test
