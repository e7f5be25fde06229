// SPDX-License-Identifier: Apache-2.0
#include "import/onnx/order.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace rlx::onnx {

namespace {

using Names = std::unordered_set<std::string_view>;

void add_reads(const NodeProto& node, Names& reads);

// What a sub-graph reads of the graphs around it. The depth of sub-graphs is limited where they are parsed.
void add_reads(const GraphProto& graph, Names& reads) {
  Names inner;
  for (const NodeProto& node : graph.node) add_reads(node, inner);
  for (const ValueInfoProto& output : graph.output) inner.insert(output.name);
  for (const NodeProto& node : graph.node)
    for (std::string_view own : node.output) inner.erase(own);
  for (const ValueInfoProto& own : graph.input) inner.erase(own.name);
  for (const TensorProto& own : graph.initializer) inner.erase(own.name);
  reads.merge(inner);
}

void add_reads(const NodeProto& node, Names& reads) {
  reads.insert(node.input.begin(), node.input.end());
  for (const AttributeProto& attribute : node.attribute)
    for (const GraphProto& graph : attribute.graphs) add_reads(graph, reads);
}

class Sorter {
 public:
  explicit Sorter(const GraphProto& graph) : graph_(graph), is_met_(graph.node.size()) {
    for (size_t i = 0; i < graph.node.size(); i++)
      for (std::string_view name : graph.node[i].output) producers_.emplace(name, i);
    producers_.erase("");  // an output that is left out
  }

  bool is_sorted() const {
    for (size_t i = 0; i < graph_.node.size(); i++)
      if (std::ranges::any_of(producers_of(i), [&](size_t producer) { return producer >= i; })) return false;
    return true;
  }

  std::vector<size_t> sort() {
    for (size_t i = 0; i < graph_.node.size(); i++) {
      meet(i);
      while (!open_.empty()) step();
    }
    return std::move(sorted_);
  }

 private:
  struct Open {
    size_t node;
    std::vector<size_t> before;  // what it reads and has not been looked at, the last first
  };

  std::vector<size_t> producers_of(size_t node) const {
    Names reads;
    add_reads(graph_.node[node], reads);
    std::vector<size_t> producers;
    for (const std::string_view& name : reads)
      if (auto producer = producers_.find(name); producer != producers_.end()) producers.push_back(producer->second);
    return producers;
  }

  void meet(size_t node) {
    if (is_met_[node]) return;
    is_met_[node] = true;
    Open open{node, producers_of(node)};
    std::sort(open.before.rbegin(), open.before.rend());
    open_.push_back(std::move(open));
  }

  void step() {
    Open& last = open_.back();
    if (last.before.empty()) {
      sorted_.push_back(last.node);
      open_.pop_back();
      return;
    }
    size_t next = last.before.back();
    last.before.pop_back();
    meet(next);
  }

  const GraphProto& graph_;
  std::unordered_map<std::string_view, size_t> producers_;
  std::vector<bool> is_met_;
  std::vector<Open> open_;  // each is read by the one before
  std::vector<size_t> sorted_;
};

}  // namespace

std::vector<size_t> sorted_nodes(const GraphProto& graph) {
  Sorter sorter(graph);
  return sorter.is_sorted() ? std::vector<size_t>() : sorter.sort();
}

}  // namespace rlx::onnx
