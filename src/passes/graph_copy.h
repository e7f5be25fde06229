// SPDX-License-Identifier: Apache-2.0
// Copying nodes from one graph into another: whole graphs, what one value depends on, or the body of control flow. One
// map says which value of the copy stands for which value of the original.
#pragma once

#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "ir/graph.h"

namespace rlx {

class GraphCopy {
 public:
  GraphCopy(const Graph& from, Graph& to) : from_(from), to_(to) {}
  Graph& to() { return to_; }

  // What stands for a value; the last word counts. A value that has a copy is not copied again.
  void set(Value value, Value copy) { map_[key(value)] = copy; }
  void set_outputs(uint32_t node, std::span<const Value> copies);
  bool has(Value value) const { return map_.contains(key(value)); }
  Value mapped(Value value) const { return present(value) ? map_.at(key(value)) : value; }
  std::vector<Value> mapped(std::span<const Value> values) const;

  Status declare();  // the symbols and guards
  Status declare_used();  // the same, without symbols that nothing names
  Status add_input(size_t input, std::string_view name);
  Status add_outputs();
  // One node on the copies of its inputs. A param is the one of its name, where the copy has such a one.
  void copy(uint32_t node);           // with its types, which are those of its inputs in the copy
  Status infer_again(uint32_t node);  // with types that follow from its inputs in the copy
  // All nodes that have no copy yet, and those of them that a value depends on; types follow from inputs.
  Status copy_rest();
  Result<Value> copy_cone(Value value);

 private:
  void set_made(uint32_t node, Value made);
  static uint64_t key(Value value) { return uint64_t{value.node} << 32 | value.output; }

  const Graph& from_;
  Graph& to_;
  std::unordered_map<uint64_t, Value> map_;
};

// The graph with some of its nodes replaced: `replace` gives the outputs that stand for a node in the copy, or none
// where the node is to be copied. It is asked about every node but inputs and params, in order.
using ReplaceFn = FunctionRef<Result<std::vector<Value>>(GraphCopy& copy, uint32_t node)>;
Result<Graph> with_replaced(const Graph& graph, ReplaceFn replace);

std::vector<Value> outputs_of(const Graph& graph, uint32_t node);

}  // namespace rlx
