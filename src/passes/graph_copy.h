// SPDX-License-Identifier: Apache-2.0
// Copies nodes from one graph into another: a whole graph, one value with all that it depends on, or the body of
// control flow. A map says which value of the copy stands for which value of the original.
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

  // Sets the copy of a value; a later call replaces an earlier one. A value that has a copy is not copied again.
  void set(Value value, Value copy) { map_[key_of(value)] = copy; }
  void set_outputs(uint32_t node, std::span<const Value> copies);
  bool has(Value value) const { return map_.contains(key_of(value)); }
  Value mapped(Value value) const { return present(value) ? map_.at(key_of(value)) : value; }
  std::vector<Value> mapped(std::span<const Value> values) const;
  Node mapped_node(uint32_t index) const;  // as it is, but on the copies of its inputs

  Status declare();  // copies symbols, guards, and whether it is a graph of the prologue
  // Copies the guards, and the symbols that a node or guard names. A symbol that is there keeps its range: a body's
  // declaration is a guard of the graph around it.
  Status declare_used();
  Status add_input(size_t input, std::string_view name);
  Status add_outputs();

  // Copies of one node, whose inputs have copies.
  void copy(uint32_t node);            // keeps the types: those of the inputs must be unchanged
  Status infer_again(uint32_t index);  // infers the types from the new inputs; a param may be there, by its name

  // Copies of many nodes.
  Status copy_rest();                    // of all nodes that have none, but inputs; params as `infer_again` does
  Result<Value> copy_cone(Value value);  // infer_again for all nodes without a copy that the value depends on
  Status copy_all();                     // `copy` for every node, and the outputs

 private:
  void set_made(uint32_t node, Value made);

  const Graph& from_;
  Graph& to_;
  std::unordered_map<uint64_t, Value> map_;
};

// A copy of the graph in which some nodes are replaced, without dead nodes. `replace` is called for every node but
// inputs and params, in order. It returns the values that stand for the node's outputs, or none if the node is to be
// copied.
using ReplaceFn = FunctionRef<Result<std::vector<Value>>(GraphCopy& copy, uint32_t node)>;
Result<Graph> with_replaced(const Graph& graph, ReplaceFn replace);

// The body that a pass has made of `given`, with the sizes of the outputs as `given` has them. The guards of a body may
// prove that another dim is the same size; but the types around the body rest on its dims, and hold without its guards.
Result<Graph> with_sizes_of(const Graph& given, Graph body);

}  // namespace rlx
