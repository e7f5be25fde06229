// SPDX-License-Identifier: Apache-2.0
// Copying the graph of a body into one with other inputs. Invariant: nodes keep their order, and what is set by the
// caller is not copied.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace rlx {

// A value with all that it depends on, from one graph into another; a param that is there already is that one.
class ConeCopy {
 public:
  ConeCopy(const Graph& from, Graph& to) : from_(from), to_(to) {}
  Result<Value> copy(Value value);
  void set(uint32_t input, Value copy) { map_[input] = copy; }  // what stands for an input

 private:
  Result<Value> copy_node(uint32_t index);
  Value mapped(Value value) const;

  const Graph& from_;
  Graph& to_;
  std::unordered_map<uint32_t, Value> map_;  // a node's first output
};

class BodyCopy {
 public:
  explicit BodyCopy(const Graph& body);  // with symbols and guards
  // Into a graph that exists: what it lacks is declared.
  static Status copy_into(const Graph& body, std::span<const Value> inputs, Graph& to, std::vector<Value>& outputs);

  Graph& graph() { return to_; }
  Status keep_input(size_t input) { return keep_input(input, from_.leaf_name(from_.inputs()[input])); }
  Status keep_input(size_t input, std::string_view name);
  void set(Value value, Value copy) { map_[value.node][value.output] = copy; }
  bool is_set(Value value) const { return map_[value.node][value.output] != kInvalid; }
  Status copy_rest();  // what is not set, and the outputs
  std::shared_ptr<const Graph> finish() { return std::make_shared<const Graph>(std::move(to_)); }

 private:
  const Graph& from_;
  Graph to_;
  std::vector<std::vector<Value>> map_;  // [node][output]
};

}  // namespace rlx
