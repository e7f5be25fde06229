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
  void copy_keeping_types(uint32_t node);  // the types of the inputs must be unchanged
  // Infers the types from the new inputs. A param may be there, by its name.
  Status copy_inferring_types(uint32_t index);

  // Copies of many nodes.
  Status copy_uncopied();                // keeps the types of all nodes without a copy, but inputs; infers params
  Result<Value> copy_cone(Value value);  // infers the types of all nodes without a copy that the value depends on
  Status copy_all();                     // keeps the types of every node; and the outputs

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

// The body, with its outputs typed by the dims that `given` had. A pass may have found other dims, which are equal only
// by the guards of the body; the graph around it has no such guards.
Result<Graph> with_sizes_of(const Graph& given, Graph body);

}  // namespace rlx
