// SPDX-License-Identifier: Apache-2.0
// The importer walks over an ONNX graph: it keeps values by name, builds node after node, and collects the nodes that
// it cannot import.
#pragma once

#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "import/onnx/call.h"
#include "import/onnx/onnx.h"
#include "import/onnx/tensor.h"

namespace rlx::onnx {

inline constexpr const char* kFollowsRefused = "follows";  // detail of a status: a node refused before is to blame
// Detail of a status: only an unrolled loop knows what is needed.
inline constexpr const char* kUnrolledOnly = "unrolled";

// Detail of a status: data choose between branches of an If whose results have unequal ranks.
inline constexpr const char* kUnequalRanks = "ranks";

const NodeKind* find_kind(std::string_view op_type, std::string_view domain);  // null: unknown
// Initializers that nodes read as one number per channel. They become constants, not params, because rules examine
// them.
std::unordered_set<std::string_view> numbers_per_channel(const GraphProto& graph);

// The name of an element of a sequence that is an input or output.
std::string element_name(const std::string& sequence, size_t i);

// One name a line, as kStaticInputs has them.
std::string lines(const auto& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : "\n") + name;
  return text;
}

// A sub-graph that runs as a body. It is closed: what it reads of the graphs around it are its last inputs. Until it is
// finished, it looks up symbols in the importer.
struct BodyGraph {
  Graph graph;
  std::vector<Value> outputs;                     // not added yet
  std::vector<int> bits;                          // of each output, where its numbers are narrower than its dtype
  std::vector<OnnxValue*> captures;               // the values that the last inputs stand for, in order
  Result<std::shared_ptr<const Graph>> finish();  // with these outputs
};

class Importer {
 public:
  Importer(const Source& source, const ModelProto& model, Imported& out, const ImportOptions& options)
      : model_(model), reader_(source), out_(out), options_(options) {}
  Status run();

  // For `Call`.
  Status resolve(OnnxValue& value);  // reads an initializer
  Result<OnnxValue*> find(std::string_view name);
  Expr expr(OnnxValue& value, Builder& builder);
  Result<Tensor> read(const TensorProto& proto);  // of an attribute
  Result<Tensor> read(const SparseTensorProto& proto);
  // The inputs of the model that decide a value, together with its sizes, if a graph can be made for each of their
  // values: small lists of floats, and small tensors of integers or bools. Empty if the sizes alone decide it; nullopt
  // if other data do.
  std::optional<std::vector<std::string>> static_inputs(const OnnxValue& value) const;
  // The refused nodes so far. A node that does not need the nodes it contains restores the earlier state.
  struct Refusals {
    std::vector<std::pair<std::string, size_t>> kinds;  // the reason, and the number of nodes
    std::string first, first_name, first_op;            // the first node that cannot be imported
    std::set<std::string> wanted;                       // inputs that a refused node would have to know
    bool only_unknown = true;                           // nothing is refused for another reason
    bool unrolls = false;                               // a refused node may be known once its loop is unrolled
  };
  Refusals& refusals() { return refusals_; }
  // A node was imported as if an open size were not 1. If later nodes are refused, they may be right where the size is
  // 1.
  void assume_sizes() { assumes_sizes_ = true; }
  // Keeps a graph that a builder has made: its initializers are read when they are asked for.
  const GraphProto& keep(GraphProto graph) { return made_graphs_.emplace_back(std::move(graph)); }
  bool is_in_body() const { return !levels_.empty(); }
  bool stretches() const { return options_.choices.stretches; }
  // The nodes of a sub-graph in a scope of its own, on these inputs; its outputs.
  Result<std::vector<OnnxValue>> inline_graph(const GraphProto& graph, std::vector<OnnxValue> inputs = {});
  // A copy as a value of the graph under construction: a value of a graph around it is captured.
  Result<OnnxValue> local(OnnxValue& value);
  // A sub-graph on inputs of these types; `captures` become inputs in any case. Values of graphs further out are
  // captured by the graphs between, when their nodes ask for them.
  Result<BodyGraph> body_graph(const GraphProto& graph, std::span<const ValueType> inputs,
                               std::span<OnnxValue* const> captures);

 private:
  class StaticWalk;
  using Computed = std::optional<std::vector<Tensor>>;

  // ---- onnx.cpp: the model, values, nodes ----
  Status check_opsets();
  int64_t opset_of(std::string_view domain) const;
  Status add_initializers(const GraphProto& graph);
  Status add_outputs(const GraphProto& graph);
  Status define(std::string_view name, OnnxValue value);
  bool may_be_param(const OnnxValue& value, const Tensor& tensor) const;  // becomes a param if the graph reads it
  Result<Value> add_param(const OnnxValue& value);
  Status add_params();
  Status add_nodes(const GraphProto& graph);
  Status add_node(const NodeProto& node);
  Status build(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in);
  Status store(const NodeProto& node, std::vector<OnnxValue> results);
  Status failed(const NodeProto& node, Status status);
  void refuse(const NodeProto& node, const Status& status);
  void refuse_outputs(const NodeProto& node);
  Status refused() const;  // the result of the whole import
  Status refused(std::string message) const;

  // ---- inputs.cpp ----
  Status add_inputs();
  Status check_given() const;
  bool is_of_open_rank(std::string_view size) const;
  Status check_input_names(std::span<const ValueInfoProto* const> inputs) const;
  Status add_input(const ValueInfoProto& info);
  void find_determined(std::span<const ValueInfoProto* const> inputs);
  Dim dim_of(const DimensionProto& dim, std::string_view input, size_t axis) const;
  Dim input_dim(const DimensionProto& proto, std::string_view input, size_t axis) const;
  Result<OnnxValue> tensor_input(const std::string& name, TensorTypeProto type);
  Result<OnnxValue> sequence_input(const std::string& name, const ElementTypeProto& type);

  // ---- fold_nodes.cpp: nodes that the importer computes ----
  Computed compute(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in);
  bool fold_literals(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in);
  bool fold_moves(const NodeKind& kind, const NodeProto& node, const std::vector<OnnxValue*>& in);

  // ---- functions.cpp ----
  Status count_expanded(size_t nodes);
  Status expand(const FunctionProto& function, const NodeProto& node, const std::vector<OnnxValue*>& in);

  // ---- bodies.cpp: sub-graphs ----
  Result<Value> capture(OnnxValue& value);
  Result<const Graph*> known_symbols();
  Status fill_body(const GraphProto& graph, std::span<const ValueType> inputs, BodyGraph& body);
  Status finish_in_branches(const GraphProto& graph, std::span<const size_t> nodes);

  // ---- static_inputs.cpp ----
  const Graph& graph_at(size_t level) const;  // of the bodies that are being built; 0: of the model
  // The inputs of the model that decide the sizes of a node's operands which only the run finds; none if other data
  // decide them too.
  std::set<std::string> static_inputs_of_sizes(const NodeProto& node);

  using Scope = std::unordered_map<std::string_view, OnnxValue>;
  const ModelProto& model_;
  TensorReader reader_;
  Imported& out_;
  const ImportOptions& options_;
  std::vector<Scope> scopes_;
  std::set<std::string, std::less<>> sizes_;       // that inputs have, by name
  std::set<std::string, std::less<>> determined_;  // names in sizes of inputs that a run can solve for
  std::deque<GraphProto> made_graphs_;             // bodies of functions with the attributes of a call; see `keep`
  size_t expanded_ = 0;                            // nodes of functions and of unrolled trips
  std::vector<const FunctionProto*> functions_;    // that are being expanded
  // The symbols of the graph of the model, in a graph of their own. A body under construction takes ranges from
  // here, and gives its own symbols other names. It does not see the guards of the model's graph, as it must be valid
  // without them.
  Graph symbols_;
  struct Level {
    const Graph* around;                                 // the graph that its node is in
    std::unordered_map<const OnnxValue*, Value> inputs;  // by the value that they stand for
    std::vector<OnnxValue*> captures;
    std::map<const OnnxValue*, OnnxValue> sequences;  // of the graphs around, with their elements captured
    Graph symbols;                                    // of its body, as `symbols_`
  };
  std::deque<Level> levels_;                                   // of bodies that are being built
  std::unordered_map<std::string, const std::byte*> weights_;  // by name of the param: its bytes
  Refusals refusals_;
  bool assumes_sizes_ = false;
};

}  // namespace rlx::onnx
