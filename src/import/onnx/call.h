// SPDX-License-Identifier: Apache-2.0
// A Call is one ONNX node for the builder of its kind: inputs as expressions or as sizes, attributes, outputs. A getter
// does not return a failure: the call keeps the first one, and the importer reads it at the end.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/onnx/model.h"
#include "ops/expr.h"

namespace rlx::onnx {

class Call;
class Importer;

// A small integer or bool tensor whose elements are known as numbers or as expressions over the model's sizes
// (semantics.md S7). Shape arithmetic computes on these and makes no ops.
struct Sizes {
  DType dtype = DType::kI64;
  std::vector<int64_t> dims;
  std::vector<Dim> items;
};
inline constexpr size_t kMaxSizes = 64;
// The elements of a small literal tensor of integers or bools; nullopt of another one.
std::optional<Sizes> sizes_of(const Tensor& tensor);

// What is known about an ONNX value. It becomes a value of the graph only when an op needs it.
struct OnnxValue {
  std::string_view name;
  ValueType type;
  Value value = kInvalid;                    // in the graph, if it is there already
  Tensor tensor;                             // its elements, if they are literal
  std::optional<Sizes> sizes;                // its elements, if they are sizes
  const TensorProto* initializer = nullptr;  // not read yet
  bool is_weight = false;                    // an initializer: large ones become params
  int bits = 0;                              // of numbers narrower than their dtype: 2 or 4; 0: full width
  bool refused = false;                      // made by a node that cannot be imported
  bool absent = false;                       // an optional input of a function that its caller leaves out
  bool is_sequence = false;                  // a sequence of `items`, of known length; an absent optional is one too
  bool is_stacked = false;  // the only item is a tensor whose rows are the elements: only the run knows how many
  std::vector<OnnxValue> items = {};
  size_t level = 0;  // the nesting level of bodies at which `value` lives
};

// An ONNX attribute that is a number and the attribute of ours that it becomes.
struct AttrRow {
  const char* theirs = nullptr;
  const char* ours = nullptr;
  double fallback = 0;  // ONNX's default
};

// One row per node kind. The tables are in the files of this folder, a group of kinds each.
struct NodeKind {
  std::string_view op_type;
  void (*build)(Call& call);
  std::string_view op = {};                            // our op, for builders that serve several kinds
  std::optional<Sizes> (*fold)(Call& call) = nullptr;  // the result as sizes, if it is known
  AttrRow attrs[2] = {};
  std::string_view domain = {};  // "": ai.onnx
  bool control = false;          // changes the importer itself, so it must not be tried on a scratch graph
  unsigned moves = 0;            // bits: the results are elements of these inputs; the others say which
  unsigned per_channel = 0;      // bits: these inputs have one number per channel; they stay constants of any size
};
// A row of the domain com.microsoft: a kind that ONNX Runtime defines, and that its optimiser and exporters write.
constexpr NodeKind microsoft(std::string_view op_type, void (*build)(Call&), std::string_view op = {}) {
  return {op_type, build, op, nullptr, {}, "com.microsoft"};
}

std::span<const NodeKind> elementwise_kinds();
std::span<const NodeKind> shape_kinds();
std::span<const NodeKind> movement_kinds();
std::span<const NodeKind> index_kinds();
std::span<const NodeKind> reduce_kinds();
std::span<const NodeKind> nn_kinds();
std::span<const NodeKind> control_kinds();
std::span<const NodeKind> loop_kinds();
std::span<const NodeKind> scan_kinds();
std::span<const NodeKind> conv_kinds();
std::span<const NodeKind> image_kinds();
std::span<const NodeKind> random_kinds();
std::span<const NodeKind> signal_kinds();
std::span<const NodeKind> contrib_kinds();
std::span<const NodeKind> contrib_attention_kinds();
std::span<const NodeKind> contrib_quantize_kinds();
std::span<const NodeKind> contrib_expert_kinds();
std::span<const NodeKind> contrib_gate_kinds();
std::span<const NodeKind> contrib_position_kinds();
std::span<const NodeKind> experiment_kinds();
std::span<const NodeKind> loss_kinds();
std::span<const NodeKind> quantize_kinds();
std::span<const NodeKind> contents_kinds();
std::span<const NodeKind> recurrent_kinds();
std::span<const NodeKind> attention_kinds();
std::span<const NodeKind> sequence_kinds();
std::span<const NodeKind> linear_attention_kinds();
std::span<const NodeKind> ngram_kinds();
std::span<const NodeKind> ml_kinds();
std::span<const NodeKind> svm_kinds();
std::span<const NodeKind> tree_kinds();

class Call {
 public:
  Call(Importer& importer, Builder& builder, const NodeKind& kind, const NodeProto& node, int64_t opset,
       std::vector<OnnxValue*> in)
      : importer_(importer),
        builder_(builder),
        kind_(kind),
        node_(node),
        opset_(opset),
        in_(std::move(in)),
        has_bits_(std::ranges::any_of(in_, [](const OnnxValue* it) { return it && it->bits != 0; })),
        read_(node.attribute.size()),
        out_(node.output.size()) {}

  // A call of the same kind for another node, which must outlive it, on these inputs.
  Call call_on(const NodeProto& node, const std::vector<size_t>& inputs) const;
  const NodeProto& node() const { return node_; }
  const NodeKind& kind() const { return kind_; }
  int64_t opset() const { return opset_; }
  Builder& builder() { return builder_; }
  Importer& importer() { return importer_; }

  // ---- inputs ----
  size_t inputs() const { return in_.size(); }
  bool has(size_t i) const { return i < in_.size() && in_[i]; }
  Expr in(size_t i);  // an absent Expr for one that is left out
  const ValueType& type(size_t i);
  const OnnxValue* value(size_t i) const { return has(i) ? in_[i] : nullptr; }
  int bits(size_t i) const { return has(i) ? in_[i]->bits : 0; }
  const Sizes* sizes(size_t i);                              // null: the elements are not known before a run
  std::vector<Dim> dims(size_t i, const char* what);         // the elements, which must be sizes
  std::vector<int64_t> numbers(size_t i, const char* what);  // the elements, which must be integers
  std::vector<double> reals(size_t i, const char* what);     // the elements, of any dtype
  // The elements as sizes. An element that only the run knows becomes a symbol that the run binds; a negative one
  // becomes 0.
  std::vector<Dim> run_dims(size_t i, const char* what);
  Dim run_dim(Expr count);  // the same of a scalar
  Interval range(const Dim& dim) const { return builder_.graph().range(dim); }

  // ---- attributes ----
  bool has_attr(std::string_view name) const;
  int64_t i64(std::string_view name, int64_t fallback);
  double f64(std::string_view name, double fallback);
  int32_t element_type(std::string_view name);  // before opset 6 by its name
  std::string_view text(std::string_view name, std::string_view fallback);
  std::vector<int64_t> i64s(std::string_view name, const std::vector<int64_t>& fallback = {});
  std::vector<double> f64s(std::string_view name);
  DType dtype(std::string_view name, DType fallback);
  std::vector<std::string_view> texts(std::string_view name);
  const TensorProto* tensor(std::string_view name);
  const SparseTensorProto* sparse_tensor(std::string_view name);
  const GraphProto* graph(std::string_view name);
  void ignore(std::string_view name);  // an attribute that has no meaning for us

  // ---- results ----
  // One of our ops by name. If there is no such op, the node is unsupported.
  Outputs ops(std::string_view name, std::span<const Expr> in, const NamedAttrs& attrs = {});
  Expr op(std::string_view op, std::initializer_list<Expr> in, const NamedAttrs& attrs = {}) {
    return ops(op, std::span<const Expr>(in.begin(), in.size()), attrs)[0];
  }
  // Normalised. After a failure there are none, and the single axis is 0.
  Axes axes(const std::vector<int64_t>& axes, size_t rank);
  int64_t axis(int64_t axis, size_t rank) {
    Axes normal = axes({axis}, rank);
    return normal.empty() ? 0 : normal[0];
  }
  void out(size_t i, Expr expr);
  void out(size_t i, Tensor tensor);
  void out(size_t i, const OnnxValue& value);
  void out_value(size_t i, size_t input);  // output i is the input: a tensor, a sequence, or absent
  OnnxValue local(size_t input);       // a copy of the input in the graph under construction; absent if the input is
  void set_bits(size_t i, int bits) {  // of an output
    if (wants(i)) out_[i].bits = bits;
  }
  bool wants(size_t i) const { return i < node_.output.size() && !node_.output[i].empty(); }
  std::vector<OnnxValue>& results() { return out_; }
  size_t outputs() const { return node_.output.size(); }

  void fail(Code code, std::string message);  // keeps the first
  void fail(const Status& failure);
  void fail_of_sizes(std::string message);  // with known sizes it may succeed: a special model is tried
  // The failure that the elements of a value are not known. If inputs of the model or sizes decide them, the status
  // says so: then a special model can be made.
  Status unknown(const OnnxValue& value, const Status& failure) const;
  void fail_unless_known(size_t i, const Status& failure) { fail(unknown(*in_[i], failure)); }
  Status status() const;  // an error too if an attribute was not read

 private:
  const AttributeProto* attribute(std::string_view name, int32_t type, const char* expected);
  Importer& importer_;
  Builder& builder_;
  const NodeKind& kind_;
  const NodeProto& node_;
  int64_t opset_;
  std::vector<OnnxValue*> in_;
  bool has_bits_;           // whether an input has numbers of few bits
  std::vector<bool> read_;  // attributes
  std::vector<OnnxValue> out_;
  Status status_;
};

}  // namespace rlx::onnx
