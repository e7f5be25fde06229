// SPDX-License-Identifier: Apache-2.0
// Graph: nodes in topological order, each with typed outputs that inference gave it. A graph only grows; what changes
// one builds another. The invariant: every node was accepted by its row (arity, dtypes, attributes, shapes).
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/status.h"
#include "ir/attr.h"
#include "ir/op.h"

namespace rlx {

struct ValueType {
  DType dtype = DType::kNone;
  std::vector<Dim> dims;
  size_t rank() const { return dims.size(); }
  bool operator==(const ValueType&) const = default;
};
std::string text_of(const ValueType& type);  // "f32[batch,4]"
Dim element_count(std::span<const Dim> dims);
bool all_literal(std::span<const Dim> dims);

// One output of a node.
struct Value {
  uint32_t node = UINT32_MAX;
  uint32_t output = 0;
  bool operator==(const Value&) const = default;
  auto operator<=>(const Value&) const = default;
};
inline constexpr Value kAbsent{UINT32_MAX - 1, 0};  // an optional input that is left out
inline constexpr Value kInvalid{};
inline bool present(Value value) {
  return value.node < kAbsent.node;
}

struct Node {
  Op op;
  std::vector<Value> in;  // trailing absent inputs are dropped
  Attrs attrs;
  std::vector<ValueType> out;
  std::string name;  // for messages, prints and profiles; may be empty
};

struct GraphOutput {
  std::string name;
  Value value;
};

// A condition on sizes that could not be proved at build (OPS.md D2); checked whenever sizes are bound.
struct Guard {
  enum Relation : uint8_t { kEqual, kLessEqual } relation;
  Dim a, b;
  std::string where;  // the node, for the message
  bool operator==(const Guard& other) const { return relation == other.relation && a == other.a && b == other.b; }
};

class Graph {
 public:
  explicit Graph(std::string name = "", const OpTable* table = &op_table()) : name_(std::move(name)), table_(table) {}

  const std::string& name() const { return name_; }
  const OpTable& table() const { return *table_; }
  const OpInfo& info(Op op) const { return table_->info(op); }
  const OpInfo& info(const Node& node) const { return table_->info(node.op); }

  // Symbols, in the order of their declaration. Declaring again intersects the ranges; an empty range is RLX_E_RANGE.
  Status declare_symbol(std::string_view name, Interval range);
  const std::vector<std::pair<std::string, Interval>>& symbols() const { return symbols_; }
  Interval symbol_range(std::string_view name) const;  // [0, unbounded] for one that nobody declared
  Interval range(const Dim& dim) const;
  Status add_guard(Guard guard);  // dropped when the ranges prove it, RLX_E_SHAPE when they refute it
  const std::vector<Guard>& guards() const { return guards_; }
  bool implies_le(const Dim& a, const Dim& b) const;  // a <= b by the ranges or by a guard

  // Appends a node: checks it against its row and infers its outputs. On failure the graph is as before; the status
  // names the op, the input or attribute, what was expected and what came. `internal`: ops that users may not build are
  // legal.
  Result<Value> add(Op op, std::span<const Value> in, const NamedAttrs& attrs = {}, std::string name = {});
  Result<Value> add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name = {});
  Result<Value> add_input(std::string_view name, DType dtype, std::vector<Dim> dims);
  Result<Value> add_param(std::string_view name, DType dtype, std::vector<Dim> dims);
  Result<Value> add_constant(Tensor value);
  Status add_output(std::string_view name, Value value);
  void set_name(Value value, std::string_view name) { nodes_[value.node].name = name; }

  const std::deque<Node>& nodes() const { return nodes_; }
  const Node& node(Value value) const { return nodes_[value.node]; }
  const Node& node(uint32_t index) const { return nodes_[index]; }
  const ValueType& type(Value value) const { return nodes_[value.node].out[value.output]; }
  std::span<const uint32_t> inputs() const { return inputs_; }  // nodes, in the order of declaration
  std::span<const uint32_t> params() const { return params_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::string& leaf_name(uint32_t node) const { return nodes_[node].attrs.str("name"); }
  std::optional<Value> find_leaf(std::string_view name) const;  // an input or param
  const Tensor* constant(Value value) const;                    // its tensor, or null
  std::string describe(uint32_t node) const;                    // "layer_norm 'encoder.0.norm' (%17)", for messages

 private:
  friend Status infer_node(Graph&, const OpInfo&, Node&);
  std::string name_;
  const OpTable* table_;
  std::deque<Node> nodes_;  // a deque: a node stays where it is while others are added
  std::vector<uint32_t> inputs_, params_;
  std::vector<GraphOutput> outputs_;
  std::vector<std::pair<std::string, Interval>> symbols_;
  std::vector<Guard> guards_;
};

// How often each value is used, by nodes and as a graph output.
std::vector<std::vector<uint32_t>> use_counts(const Graph& graph);  // [node][output]

// Every symbol in the sizes and attributes of a node, in its sub-graphs too.
void visit_symbols(const Node& node, const std::function<void(const std::string&)>& body);

// A size that the contents of a value decide in the run, and the node that finds it (OPS.md D6). Nodes that name it
// depend on that node, whether they read it or not.
struct DecidedSize {
  std::string symbol;
  uint32_t node;
};
std::vector<DecidedSize> decided_sizes(const Graph& graph);

// What inference sees of a node. `out` arrives with the dtypes that the signature gives.
struct InferArgs {
  Graph& graph;
  const OpInfo& info;
  std::span<const ValueType* const> in;  // one per port, null where absent; variadic inputs follow
  Attrs& attrs;                          // in normal form; may be completed (a fresh symbol's name), never changed
  std::vector<ValueType>& out;
  std::string where;

  size_t rank(size_t i = 0) const { return in[i]->rank(); }
  const std::vector<Dim>& dims(size_t i = 0) const { return in[i]->dims; }
  Status fail(Code code, std::string message) const;
  Result<Dim> same(const Dim& a, const Dim& b, std::string_view what);     // D2: equal, or a guard
  Status require_le(const Dim& a, const Dim& b, std::string_view what);    // a <= b, or a guard
  Result<Dim> divided(const Dim& a, const Dim& b, std::string_view what);  // a / b exactly, or with a guard
  Dim not_negative(const Dim& dim) const;                                  // max(0, dim), dropped where ranges prove it
  Result<std::vector<Dim>> broadcast(std::span<const Dim> a, std::span<const Dim> b);  // D3
};

}  // namespace rlx
