// SPDX-License-Identifier: Apache-2.0
// Graph: nodes in topological order, each with outputs whose types were inferred, in a scope of sizes. Names are found
// by hash. A graph grows. Code that adds on trial takes back what it has added (`roll_back`); `reordered` leaves nodes
// out. Invariant: every node was accepted by its row (arity, dtypes, attributes, shapes).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/inlined_vector.h"
#include "base/stable_vector.h"
#include "base/status.h"
#include "ir/attr.h"
#include "ir/op.h"
#include "ir/sizes.h"

namespace rlx {

class CustomOps;  // ops/custom.h

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

inline uint64_t key_of(Value value) {  // for tables
  return uint64_t{value.node} << 32 | value.output;
}

using OutputTypes = InlinedVector<ValueType, 1>;

struct Node {
  Op op;
  InlinedVector<Value, 2> in;  // trailing absent inputs are dropped
  Attrs attrs;
  OutputTypes out;
  std::string name;  // for messages, prints and profiles; may be empty
};

struct GraphOutput {
  std::string name;
  Value value;
};

class Graph : public SizeScope {
 public:
  // `around`: a graph whose symbols and guards hold here too, without a copy. It must outlive this one.
  explicit Graph(std::string name = "", const OpTable* table = &op_table(), const Graph* around = nullptr)
      : SizeScope(around), name_(std::move(name)), table_(table), around_(around) {}

  // From now on failures do not name nodes of this graph: it is the definition of an op, whose name the user knows.
  void set_definition() { is_definition_ = true; }
  // The ops that the host has registered; of the graph around it, if it has none of its own. May be null. Their
  // environment keeps them, not the graph: some have bodies, which are graphs.
  void set_customs(const std::shared_ptr<const CustomOps>& customs) { customs_ = customs; }
  std::shared_ptr<const CustomOps> customs() const {
    auto own = customs_.lock();
    return own || !around_ ? own : around_->customs();
  }
  // A graph of the prologue: all that it computes belongs to its run, and only constants are resident.
  void set_prologue() { is_prologue_ = true; }
  bool is_prologue() const { return is_prologue_; }
  // The status with "reduce 'sum_1': " before its message, and the op and the name as details, unless this is a
  // definition.
  Status with_subject(const OpInfo& info, std::string_view name, Status status) const;

  const std::string& name() const { return name_; }
  void set_graph_name(std::string name) { name_ = std::move(name); }
  const OpTable& table() const { return *table_; }
  const Graph* around() const { return around_; }
  const OpInfo& info(Op op) const { return table_->info(op); }
  const OpInfo& info(const Node& node) const { return table_->info(node.op); }

  bool is_fresh(std::string_view symbol) const;  // the contents of a value decide the size (semantics.md S6)
  bool is_same_type(const ValueType& a, const ValueType& b) const;  // if all ranges and guards hold

  // Appends a node: checks it against its row and infers its outputs. On failure the graph is as before; the status
  // names the op, the input or attribute, what was expected and what came.
  Result<Value> add(Op op, std::span<const Value> in, const NamedAttrs& attrs = {}, std::string name = {});
  Result<Value> add(const OpInfo& info, std::span<const Value> in, Attrs attrs, std::string name = {});
  Result<Value> add_input(std::string_view name, DType dtype, std::vector<Dim> dims);
  Result<Value> add_param(std::string_view name, DType dtype, std::vector<Dim> dims);
  Result<Value> add_constant(Tensor value);
  Status add_output(std::string_view name, Value value);
  void set_name(Value value, std::string_view name) { nodes_[value.node].name = name; }

  const StableVector<Node>& nodes() const { return nodes_; }
  const Node& node(Value value) const { return nodes_[value.node]; }
  const Node& node(uint32_t index) const { return nodes_[index]; }
  const ValueType& type(Value value) const { return nodes_[value.node].out[value.output]; }
  std::span<const uint32_t> inputs() const { return inputs_; }  // nodes, in the order of declaration
  std::span<const uint32_t> params() const { return params_; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::string& leaf_name(uint32_t node) const { return nodes_[node].attrs.str("name"); }
  std::optional<Value> find_leaf(std::string_view name) const;  // an input or param
  std::optional<Value> find_param(std::string_view name) const;
  // Where a name stands in inputs(), params() or outputs().
  std::optional<size_t> index_of_input(std::string_view name) const;
  std::optional<size_t> index_of_param(std::string_view name) const;
  std::optional<size_t> index_of_output(std::string_view name) const;
  bool has_output(std::string_view name) const { return index_of_output(name).has_value(); }
  const Tensor* constant(Value value) const;  // its tensor, or null
  // What the nodes are, without a walk over them.
  std::vector<bool> ops() const;  // by op: whether there is a node of it
  bool has_bodies() const { return with_bodies_ > 0; }
  bool may_decide_sizes() const { return deciding_ > 0; }  // false: decided_sizes finds none
  std::string describe(uint32_t node) const;               // "layer_norm 'encoder.0.norm' (%17)", for messages

  // ---- for code that rewrites graphs ----

  // Appends a node whose types are known, such as a copy. The verifier infers them again.
  Value append(Node node);
  // Appends a copy of a node of another graph (a leaf or any other), on inputs of this graph.
  Value append_copy(const Graph& from, uint32_t index, std::span<const Value> in);
  void set_input(uint32_t node, size_t input, Value value) { nodes_[node].in[input] = value; }  // of the same type
  // The type must be the same, by `is_same_type`.
  void set_type(Value value, ValueType type) { nodes_[value.node].out[value.output] = std::move(type); }
  void set_attr(uint32_t node, std::string_view name, AttrValue value);  // must not change the types
  // Of a constant that nothing reads any more, so that memory does not grow with each fold. Other nodes stay.
  void drop_bytes(uint32_t node);
  void set_output(size_t output, Value value) { outputs_[output].value = value; }  // of the same type
  // The verifier checks nodes in an empty graph. This tells it which sizes the nodes checked so far decide (is_fresh).
  void note_decided(const Node& node) { count_decided(node, 1); }
  // A point to which roll_back returns: it removes later nodes, symbols and guards. Outputs stay, so none may have been
  // added since.
  struct Mark {
    size_t nodes;
    SizeScope::Mark sizes;
    bool operator==(const Mark&) const = default;
  };
  Mark mark() const { return {nodes_.size(), SizeScope::mark()}; }
  void roll_back(const Mark& mark);
  // The graph of these nodes in this order. It must be topological, and contain all inputs and params, and all nodes
  // that the others and the outputs read.
  Graph reordered(std::span<const uint32_t> order) &&;

 private:
  std::string operands_text(const OpInfo& info, std::span<const Value> in) const;
  void note_leaf(uint32_t node);
  void forget_leaf(uint32_t node);  // does nothing for other nodes
  void count(const Node& node, int by);
  void count_decided(const Node& node, int by);

  std::string name_;
  const OpTable* table_;
  const Graph* around_;
  std::weak_ptr<const CustomOps> customs_;
  bool is_definition_ = false;
  bool is_prologue_ = false;
  StableVector<Node> nodes_;
  std::vector<uint32_t> inputs_, params_;
  struct LeafPlace {
    bool is_param;
    uint32_t index;  // in its list
  };
  ByName<LeafPlace> leaf_places_;
  std::vector<GraphOutput> outputs_;
  ByName<uint32_t> output_index_;
  std::vector<int> count_of_;           // by row of the table: the numbers of ops have wide gaps
  int with_bodies_ = 0, deciding_ = 0;  // nodes
  ByName<int> fresh_;                   // how many nodes decide the size of a symbol in the run
};

// Something for each value of a graph: [node][output].
template <class T>
using ByValue = std::vector<InlinedVector<T, 1>>;

// How often each value is used, by nodes and as a graph output.
ByValue<uint32_t> use_counts(const Graph& graph);

// Visits every symbol in the sizes and attributes of a node, and every symbol that its bodies share with this
// graph.
void visit_symbols(const Node& node, VisitSymbol visit);

// A symbol whose size a node of the graph decides, and the node (semantics.md S6). Nodes that use the symbol depend on
// that node, even if they do not read its outputs.
struct DecidedSize {
  std::string symbol;
  uint32_t node;
  bool is_fresh;  // the contents of a value decide it; else it follows from other sizes
};
std::vector<DecidedSize> decided_sizes(const Graph& graph);
using VisitDecided = FunctionRef<void(const std::string& symbol, bool is_fresh)>;
void visit_decided_sizes(const Node& node, VisitDecided visit);  // of one node

// Whether equal nodes may become one, and one that nobody needs may go: it has no effect, nor has a node of its bodies.
bool is_pure(const OpInfo& info, const Attrs& attrs);

// By node: whether an output, an effect or a guard needs it, or it is a leaf of the interface.
std::vector<bool> needed_nodes(const Graph& graph);
Graph drop_dead(Graph graph);  // removes nodes that are not needed

}  // namespace rlx
